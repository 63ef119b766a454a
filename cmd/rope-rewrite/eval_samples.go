package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// sampleCount is a flag that takes a number of samples, and others for some lengths: 20,12k:3.
type sampleCount struct {
	all int
	at  map[int]int // by length
}

func (s *sampleCount) Type() string { return "samples" }

func (s *sampleCount) String() string {
	text := fmt.Sprint(s.all)
	for _, length := range slices.Sorted(maps.Keys(s.at)) {
		text += fmt.Sprintf(",%d:%d", length, s.at[length])
	}
	return text
}

func (s *sampleCount) Set(text string) error {
	set := sampleCount{all: s.all, at: map[int]int{}}
	for part := range strings.SplitSeq(text, ",") {
		length, number, own := strings.Cut(part, ":")
		if !own {
			length, number = "", part
		}
		n, err := strconv.Atoi(strings.TrimSpace(number))
		if err != nil || n < 1 {
			return fmt.Errorf("%q: expected numbers above 0, such as 20 or 20,12k:3", short.Name(text))
		}
		if !own {
			set.all = n
			continue
		}
		tokens, err := rope.ParseTokens(strings.TrimSpace(length))
		if err != nil {
			return err
		}
		set.at[int(tokens)] = n
	}
	*s = set
	return nil
}
