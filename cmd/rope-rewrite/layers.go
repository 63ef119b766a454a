package main

import (
	"fmt"
	"strconv"
	"strings"
)

// layers is a selection such as 0-3,7.
type layers []span

type span struct{ first, last int }

func parseLayers(text string) (layers, error) {
	var list layers
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
		list = append(list, span{first, last})
	}
	return list, nil
}

func (l layers) has(layer int) bool {
	for _, s := range l {
		if s.first <= layer && layer <= s.last {
			return true
		}
	}
	return false
}

// selection is a choice of layers with where it was made, for example
// "--scaling yarn:factor=4@0-3".
type selection struct {
	given  string
	layers layers
}

// checkLayers refuses selections of layers that a model of so many does not have.
func checkLayers(selections []selection, count int) error {
	for _, s := range selections {
		for _, part := range s.layers {
			if part.last >= count {
				return usageError("%s: there is no layer %d; the model's are 0 to %d", s.given, part.last, count-1)
			}
		}
	}
	return nil
}
