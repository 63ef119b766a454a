package main

import (
	"fmt"
	"strconv"
	"strings"
)

// parseLayers reads a list such as 0-3,7 and returns which layers are in it.
func parseLayers(text string) (func(int) bool, error) {
	type span struct{ first, last int }
	var spans []span
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(strings.TrimSpace(part), "-")
		first, err := strconv.Atoi(from)
		last := first
		if err == nil && ranged {
			last, err = strconv.Atoi(to)
		}
		if err != nil || first < 0 || last < first {
			return nil, fmt.Errorf("%q is no layer or range of layers; write for example 0-3,7", part)
		}
		spans = append(spans, span{first, last})
	}
	return func(layer int) bool {
		for _, s := range spans {
			if s.first <= layer && layer <= s.last {
				return true
			}
		}
		return false
	}, nil
}
