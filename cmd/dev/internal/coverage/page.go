package coverage

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Page is docs/coverage.md, from results by ARCHITECTURE__ROUTE.
func Page(results map[string]Result) string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	line("# Coverage")
	line("")
	line("%s", Summary(results))
	line("Written by `make coverage` from small exports with random weights (`scripts/coverage`): every export is rewritten")
	line("without a method, and the patched model is run beside the original in one call, in two, and token by token, alone and")
	line("in a batch, with and without padding on the left. It may be off from transformers in float64 by at most twice what the")
	line("original is.")
	line("")
	line("`2/2`: two of two attention sites are measured and proven. A letter names why the others are kept, below. `½`: their scores")
	line("are proven and rewritten; the model's own nodes turn query and key. `◔`: the attention is kept, and with `--target onnx` a")
	line("scaling changes its rotation alone. `none`: no rotary attention (exit code 4). `·`: there is no such export, below. `–`: ONNX")
	line("Runtime does not run the export.")
	line("`*`: its sites are proven as all are, but it was not run beside transformers: it takes other inputs (places in a cache of")
	line("fixed size, an encoder's states).")
	line("`≈`: it is off by more in some way of running, but by rounding alone: with everything but the op in float64, the two models")
	line("differ by less than half of the original's own rounding. `WRONG` would be an error of this project.")
	reasons := newReasons(results)
	for _, t := range tables(results) {
		line("")
		line("## %s", t.title)
		line("")
		line("| | %s |", strings.Join(t.heads, " | "))
		line("|---%s|", strings.Repeat("|:-:", len(t.heads)))
		for _, architecture := range t.architectures {
			cells := []string{architecture}
			for _, route := range t.routes {
				r, ok := results[architecture+"__"+route]
				if !ok {
					cells = append(cells, "")
					continue
				}
				cells = append(cells, r.cell(reasons))
			}
			line("| %s |", strings.Join(cells, " | "))
		}
	}
	methodTable(line, results)
	line("")
	line("## Why sites are kept")
	line("")
	for _, reason := range reasons.order {
		line("- **%s** (%d sites of %d exports) %s", reasons.letter(reason), reasons.sites[reason], len(reasons.exports[reason]), reasons.example[reason])
	}
	line("")
	for i, name := range slices.DeleteFunc(slices.Sorted(maps.Keys(results)), func(name string) bool { return results[name].Rounded == "" }) {
		if i == 0 {
			line("## Off by rounding")
			line("")
		}
		line("- %s: %s", name, results[name].Rounded)
	}
	line("")
	line("## Models without rotation")
	line("")
	said := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(results)) {
		if text := strings.TrimPrefix(results[name].None, "no rotary attention in the model: "); text != "" {
			said[text] = append(said[text], name)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(said)) {
		line("- %s: %s", grouped(said[text]), text)
	}
	line("")
	line("## Exports that do not exist or do not run")
	line("")
	missing := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(results)) {
		r := results[name]
		if why := cmp.Or(r.Skipped, r.Broken, r.Error, r.Wrong); why != "" && !strings.HasPrefix(why, "there is no ") {
			missing[shape(why)] = append(missing[shape(why)], name)
		}
	}
	for _, why := range slices.SortedFunc(maps.Keys(missing), func(a, b string) int {
		return cmp.Or(len(missing[b])-len(missing[a]), strings.Compare(a, b))
	}) {
		line("- %s: %s", grouped(missing[why]), why)
	}
	return out.String()
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

// table is a part of the page: architectures by routes.
type table struct {
	title         string
	architectures []string
	routes        []string
	heads         []string // how the routes are called there
}

// tables are what exporters write, what is made of each of their routes, and
// models without rotation.
func tables(results map[string]Result) []table {
	of := func(title, source string, belongs func(r Result) bool) table {
		t := table{title: title}
		for _, r := range results {
			if belongs(r) {
				t.architectures, t.routes = append(t.architectures, r.Architecture), append(t.routes, r.Route)
			}
		}
		slices.Sort(t.architectures)
		slices.Sort(t.routes)
		t.architectures, t.routes = slices.Compact(t.architectures), slices.Compact(t.routes)
		for _, route := range t.routes {
			t.heads = append(t.heads, strings.TrimPrefix(route, source))
		}
		return t
	}
	list := []table{of("As exported", "", func(r Result) bool { return r.Rotary && !strings.Contains(r.Route, "+") })}
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
	return slices.DeleteFunc(list, func(t table) bool { return len(t.routes) == 0 })
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
	text := fmt.Sprintf("%d/%d", r.Rewritten, r.Sites)
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
	for reason := range r.Kept {
		letters = append(letters, reasons.letter(shape(reason)))
	}
	slices.Sort(letters)
	if len(letters) > 0 {
		text += " " + strings.Join(slices.Compact(letters), " ")
	}
	return text
}

// Summary is the table in a sentence, or two.
func Summary(results map[string]Result) string {
	sites, rewritten, rotations, exports, whole, wrong := 0, 0, 0, 0, 0, 0
	architectures, routes := map[string]bool{}, map[string]bool{}
	for _, r := range results {
		if r.Wrong != "" {
			wrong++
		}
		if r.Skipped != "" || r.Broken != "" || !r.Rotary {
			continue
		}
		exports++
		sites, rewritten, rotations = sites+r.Sites, rewritten+r.Rewritten, rotations+r.Rotations
		if r.Sites > 0 && r.Rewritten == r.Sites {
			whole++
		}
		architectures[r.Architecture], routes[r.Route] = true, true
	}
	text := fmt.Sprintf("%d of %d attention sites are measured and proven, all of them in %d of %d exports (%d rotary architectures, %d routes); %d patched models are wrong.",
		rewritten, sites, whole, exports, len(architectures), len(routes), wrong)
	if rotations > 0 {
		text += fmt.Sprintf(" Of %d others the rotation alone is, and takes scalings.", rotations)
	}
	return text
}

// reasons are groups of sentences that differ in names and numbers only.
type reasons struct {
	order   []string // by exports, the most first
	sites   map[string]int
	exports map[string][]string
	example map[string]string
}

func newReasons(results map[string]Result) *reasons {
	s := &reasons{sites: map[string]int{}, exports: map[string][]string{}, example: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(results)) {
		if results[name].Broken != "" { // what keeps these is that ONNX Runtime does not run them
			continue
		}
		for _, reason := range slices.Sorted(maps.Keys(results[name].Kept)) {
			group := shape(reason)
			if s.example[group] == "" {
				s.example[group] = fmt.Sprintf("%s (%s)", reason, name)
				s.order = append(s.order, group)
			}
			s.sites[group] += results[name].Kept[reason]
			if !slices.Contains(s.exports[group], name) {
				s.exports[group] = append(s.exports[group], name)
			}
		}
	}
	slices.SortStableFunc(s.order, func(a, b string) int { return len(s.exports[b]) - len(s.exports[a]) })
	return s
}

func (s *reasons) letter(reason string) string {
	i := slices.Index(s.order, reason)
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
