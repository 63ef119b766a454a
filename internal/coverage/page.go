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
	line("# What is lifted")
	line("")
	line("%s", Summary(results))
	line("Written by `make coverage` from small exports with random weights (`scripts/coverage`): every export is rewritten")
	line("without a method, and the patched model is run beside the original in one call, in two, and token by token, alone and")
	line("in a batch, with and without padding on the left. It may be off from transformers in float64 by at most twice what the")
	line("original is.")
	line("")
	line("`2/2`: two of two attention sites are lifted and proven. A letter names why the others are kept, below. `none`: no")
	line("rotary attention (exit code 4). `·`: there is no such export, below. `–`: ONNX Runtime does not run the export.")
	line("`WRONG` would be an error of this project.")
	reasons := newReasons(results)
	for _, rotary := range []bool{true, false} {
		line("")
		if rotary {
			line("## Architectures with rotation")
		} else {
			line("## Architectures without")
		}
		line("")
		var rows []string
		var routes []string
		for _, r := range results {
			if r.Rotary == rotary {
				rows, routes = append(rows, r.Architecture), append(routes, r.Route)
			}
		}
		slices.Sort(rows)
		slices.Sort(routes)
		rows, routes = slices.Compact(rows), slices.Compact(routes)
		line("| | %s |", strings.Join(routes, " | "))
		line("|---%s|", strings.Repeat("|:-:", len(routes)))
		for _, architecture := range rows {
			cells := []string{architecture}
			for _, route := range routes {
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
	line("")
	line("## Why sites are kept")
	line("")
	for _, reason := range reasons.order {
		line("- **%s** (%d sites of %d exports) %s", reasons.letter(reason), reasons.sites[reason], len(reasons.exports[reason]), reasons.example[reason])
	}
	line("")
	line("## Models without rotation")
	line("")
	said := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(results)) {
		if r := results[name]; r.None != "" {
			said[r.None] = append(said[r.None], name)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(said)) {
		line("- %s: %s", strings.Join(said[text], ", "), text)
	}
	line("")
	line("## Exports that there are not, or that do not run")
	line("")
	missing := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(results)) {
		r := results[name]
		if why := cmp.Or(r.Skipped, r.Broken, r.Error, r.Wrong); why != "" {
			missing[shape(why)] = append(missing[shape(why)], name)
		}
	}
	for _, why := range slices.SortedFunc(maps.Keys(missing), func(a, b string) int { return len(missing[b]) - len(missing[a]) }) {
		line("- %s: %s", strings.Join(missing[why], ", "), why)
	}
	return out.String()
}

func (r Result) cell(reasons *reasons) string {
	switch {
	case r.Wrong != "":
		return "WRONG"
	case r.Skipped != "":
		return "·"
	case r.Error != "":
		return "error"
	case r.None != "":
		return "none"
	case r.Broken != "":
		return "–"
	}
	text := fmt.Sprintf("%d/%d", r.Lifted, r.Sites)
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

// Summary is the table in one sentence.
func Summary(results map[string]Result) string {
	sites, lifted, exports, whole, wrong := 0, 0, 0, 0, 0
	architectures, routes := map[string]bool{}, map[string]bool{}
	for _, r := range results {
		if r.Wrong != "" {
			wrong++
		}
		if r.Skipped != "" || r.Broken != "" || !r.Rotary {
			continue
		}
		exports++
		sites, lifted = sites+r.Sites, lifted+r.Lifted
		if r.Sites > 0 && r.Lifted == r.Sites {
			whole++
		}
		architectures[r.Architecture], routes[r.Route] = true, true
	}
	return fmt.Sprintf("%d of %d attention sites are lifted and proven, all of them in %d of %d exports (%d rotary architectures, %d routes); %d patched models are wrong.",
		lifted, sites, whole, exports, len(architectures), len(routes), wrong)
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
