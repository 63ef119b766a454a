package coverage

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

//go:embed page.md.tmpl
var pageText string

var pageTemplate = template.Must(template.New("").Funcs(template.FuncMap{"join": strings.Join}).Parse(pageText))

// grid is a table of the page.
type grid struct {
	Title string
	Heads []string // without the first, which is empty
	Rows  [][]string
}

// Page is a page like docs/results/architectures.md, from results by ARCHITECTURE__ROUTE.
func Page(title string, results map[string]Result) (string, error) {
	page := struct {
		Title, Summary         string
		Made                   []string
		Tables                 []grid
		Methods                grid
		Tolerance              float64
		Unchanged              *reasons
		Rounded, None, Missing []string
	}{Title: title, Summary: Summary(results), Made: made(results), Methods: methodGrid(results), Tolerance: methodTolerance, Unchanged: newReasons(results)}
	page.Tables = grids(results, page.Unchanged)
	none, missing := map[string][]string{}, map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(results)) {
		r := results[name]
		if r.Rounded != "" {
			page.Rounded = append(page.Rounded, name+": "+r.Rounded)
		}
		if text := strings.TrimPrefix(r.None, "no rotary attention in the model: "); text != "" {
			none[text] = append(none[text], name)
		}
		if why := cmp.Or(r.Skipped, r.Broken, r.Error, r.Wrong); why != "" && !strings.HasPrefix(why, "there is no ") {
			missing[shape(why)] = append(missing[shape(why)], name)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(none)) {
		page.None = append(page.None, grouped(none[text])+": "+text)
	}
	for _, why := range slices.SortedFunc(maps.Keys(missing), func(a, b string) int {
		return cmp.Or(len(missing[b])-len(missing[a]), strings.Compare(a, b))
	}) {
		page.Missing = append(page.Missing, grouped(missing[why])+": "+why)
	}
	var out strings.Builder
	err := pageTemplate.Execute(&out, page)
	return out.String(), err
}

// made says which packages made the exports of which routes.
func made(results map[string]Result) (lines []string) {
	routes := map[string][]string{}
	for _, r := range results {
		var versions []string
		for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
			versions = append(versions, name+" "+r.Versions[name])
		}
		if made := strings.Join(versions, ", "); made != "" && !slices.Contains(routes[made], r.Route) {
			routes[made] = append(routes[made], r.Route)
		}
	}
	for _, versions := range slices.Sorted(maps.Keys(routes)) {
		slices.Sort(routes[versions])
		lines = append(lines, strings.Join(routes[versions], ", ")+": "+versions)
	}
	return lines
}

// grouped names exports shortly: architectures that share their routes stand
// together, as in "llama, qwen2 (ts17, ts17+ort); phi (ts17)".
func grouped(names []string) string {
	routes := map[string][]string{}
	for _, name := range names {
		architecture, route, _ := strings.Cut(name, "__")
		routes[architecture] = append(routes[architecture], route)
	}
	sharing := map[string][]string{}
	for _, architecture := range slices.Sorted(maps.Keys(routes)) {
		slices.Sort(routes[architecture])
		list := strings.Join(routes[architecture], ", ")
		sharing[list] = append(sharing[list], architecture)
	}
	var parts []string
	for _, list := range slices.Sorted(maps.Keys(sharing)) {
		parts = append(parts, fmt.Sprintf("%s (%s)", strings.Join(sharing[list], ", "), list))
	}
	return strings.Join(parts, "; ")
}

// grids are what exporters write, what is made of each of their routes, and
// models without rotation: architectures by routes.
func grids(results map[string]Result, reasons *reasons) []grid {
	of := func(title, source string, belongs func(r Result) bool) grid {
		architectures, routes := map[string]bool{}, map[string]bool{}
		for _, r := range results {
			if belongs(r) {
				architectures[r.Architecture], routes[r.Route] = true, true
			}
		}
		g := grid{Title: title}
		for _, route := range slices.Sorted(maps.Keys(routes)) {
			g.Heads = append(g.Heads, strings.TrimPrefix(route, source))
		}
		for _, architecture := range slices.Sorted(maps.Keys(architectures)) {
			row := []string{architecture}
			for _, route := range slices.Sorted(maps.Keys(routes)) {
				cell := ""
				if r, ok := results[architecture+"__"+route]; ok {
					cell = r.cell(reasons)
				}
				row = append(row, cell)
			}
			g.Rows = append(g.Rows, row)
		}
		return g
	}
	list := []grid{of("As exported", "", func(r Result) bool { return r.Rotary && !strings.Contains(r.Route, "+") })}
	sources := map[string]bool{}
	for _, r := range results {
		if source, _, changed := strings.Cut(r.Route, "+"); changed {
			sources[source] = true
		}
	}
	for _, source := range slices.Sorted(maps.Keys(sources)) {
		list = append(list, of("After "+source, source, func(r Result) bool {
			from, _, changed := strings.Cut(r.Route, "+")
			return r.Rotary && changed && from == source && r.Skipped == ""
		}))
	}
	list = append(list, of("Architectures without rotation", "", func(r Result) bool { return !r.Rotary && r.Skipped == "" }))
	return slices.DeleteFunc(list, func(g grid) bool { return len(g.Rows) == 0 })
}

func (r Result) cell(reasons *reasons) string {
	switch {
	case r.Wrong != "":
		return "WRONG"
	case r.Skipped != "":
		return "·"
	case r.Error != "":
		return "error"
	case r.None != "" && r.Rotary:
		return "0 (none)" // a rotation that was not seen
	case r.None != "":
		return "none"
	case r.Broken != "":
		return "–"
	}
	text := fmt.Sprintf("%d/%d", r.Rewritten, r.Layers)
	if r.Halves > 0 {
		text += " ½"
	}
	if r.Rotations > 0 {
		text += " ◔"
	}
	if r.Rounded != "" {
		text += " ≈"
	}
	if r.Alone {
		text += " *"
	}
	var letters []string
	for reason := range r.Unchanged {
		letters = append(letters, reasons.Letter(shape(reason)))
	}
	slices.Sort(letters)
	if len(letters) > 0 {
		text += " " + strings.Join(slices.Compact(letters), " ")
	}
	return text
}

// Summary is the table in a sentence, or two.
func Summary(results map[string]Result) string {
	layers, rewritten, rotations, exports, whole, wrong := 0, 0, 0, 0, 0, 0
	architectures, routes := map[string]bool{}, map[string]bool{}
	for _, r := range results {
		if r.Wrong != "" {
			wrong++
		}
		if r.Skipped != "" || r.Broken != "" || !r.Rotary {
			continue
		}
		exports++
		layers, rewritten, rotations = layers+r.Layers, rewritten+r.Rewritten, rotations+r.Rotations
		if r.Layers > 0 && r.Rewritten == r.Layers {
			whole++
		}
		architectures[r.Architecture], routes[r.Route] = true, true
	}
	text := fmt.Sprintf("%d of %d attention layers are verified equal, all of them in %d of %d exports (%d rotary architectures, %d routes); %d patched models are wrong.",
		rewritten, layers, whole, exports, len(architectures), len(routes), wrong)
	if rotations > 0 {
		text += fmt.Sprintf(" Of %d others only the rotation is verified; they take scalings.", rotations)
	}
	return text
}

// reasons are groups of sentences that differ in names and numbers only.
type reasons struct {
	Order   []string // by exports, the most first
	Layers  map[string]int
	Exports map[string][]string
	Example map[string]string
}

func newReasons(results map[string]Result) *reasons {
	s := &reasons{Layers: map[string]int{}, Exports: map[string][]string{}, Example: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(results)) {
		if results[name].Broken != "" { // these are unchanged because ONNX Runtime does not run them
			continue
		}
		for _, reason := range slices.Sorted(maps.Keys(results[name].Unchanged)) {
			group := shape(reason)
			if s.Example[group] == "" {
				s.Example[group] = fmt.Sprintf("%s (%s)", reason, name)
				s.Order = append(s.Order, group)
			}
			s.Layers[group] += results[name].Unchanged[reason]
			if !slices.Contains(s.Exports[group], name) {
				s.Exports[group] = append(s.Exports[group], name)
			}
		}
	}
	slices.SortStableFunc(s.Order, func(a, b string) int { return len(s.Exports[b]) - len(s.Exports[a]) })
	return s
}

func (s *reasons) Letter(reason string) string {
	i := slices.Index(s.Order, reason)
	if i < 26 {
		return string(rune('a' + i))
	}
	return string(rune('a'+i/26-1)) + string(rune('a'+i%26))
}

var (
	quoted  = regexp.MustCompile(`"[^"]*"|'[^']*'|\([^()]*\)|\[[^\[\]]*\]`)
	numbers = regexp.MustCompile(`-?[0-9][0-9.,e+-]*`)
	label   = regexp.MustCompile(`^\S+( \S+)?: `)
)

// shape is a sentence without the names and numbers in it.
func shape(reason string) string {
	reason = label.ReplaceAllString(reason, "")
	reason = quoted.ReplaceAllString(reason, "…")
	return numbers.ReplaceAllString(reason, "N")
}
