package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/internal/suggest"
)

// Layers is a selection such as 0-3,7.
type Layers []span

type span struct{ first, last int }

// ParseLayers reads numbers and ranges with commas between.
func ParseLayers(text string) (Layers, error) {
	var list Layers
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(strings.TrimSpace(part), "-")
		first, err := strconv.Atoi(from)
		last := first
		if err == nil && ranged {
			last, err = strconv.Atoi(to)
		}
		if err != nil || first < 0 || last < first {
			return nil, fmt.Errorf("%q is not a layer or a range of layers; %s", short.Name(part), meantLayers(part))
		}
		list = append(list, span{first, last})
	}
	return list, nil
}

// otherRange is a range of layers as other tools write it, or with its ends exchanged.
var otherRange = regexp.MustCompile(`^([0-9]{1,6}) *(?:\.\.\.?|:|–|-) *([0-9]{1,6})$`)

// meantLayers says what to write for a part that is no range.
func meantLayers(part string) string {
	part = strings.TrimSpace(part)
	if ends := otherRange.FindStringSubmatch(part); ends != nil {
		first, _ := strconv.Atoi(ends[1])
		last, _ := strconv.Atoi(ends[2])
		return fmt.Sprintf("write %d-%d", min(first, last), max(first, last))
	}
	switch {
	case strings.ContainsAny(part, ":="):
		return "layers come last, after the keys: NAME:KEY=VALUE@0-3,7"
	case suggest.Nearest(part, []string{"all", "full", "windowed"}) != "":
		return "for all layers write SPEC@all, by kind SPEC@full or SPEC@windowed, and leave --layers out"
	}
	return "write e.g. 0-3,7 (the first layer is 0)"
}

// Has reports whether a layer is selected.
func (l Layers) Has(layer int) bool {
	for _, s := range l {
		if s.first <= layer && layer <= s.last {
			return true
		}
	}
	return false
}

// Selection is a choice of layers with where it was made, for example
// "--scaling yarn:factor=4@0-3".
type Selection struct {
	Given  string
	Layers Layers
}

// CheckLayers refuses selections of layers that a model of so many does not have.
func CheckLayers(selections []Selection, count int) error {
	for _, s := range selections {
		for _, part := range s.Layers {
			if part.last >= count {
				return Usage("%s: there is no layer %d; the model has layers 0 to %d", s.Given, part.last, count-1)
			}
		}
	}
	return nil
}
