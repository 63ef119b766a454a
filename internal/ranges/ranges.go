// Package ranges writes numbers of layers as people do: 0-3,7.
package ranges

import (
	"fmt"
	"strings"
)

// Text writes numbers, which rise, as 0-3,7.
func Text(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		last := i
		for last+1 < len(numbers) && numbers[last+1] == numbers[last]+1 {
			last++
		}
		parts = append(parts, Span(numbers[i], numbers[last]))
		i = last + 1
	}
	return strings.Join(parts, ",")
}

// Layers is "layer 3" or "layers 0-3,7", of a text that Text or Span wrote.
func Layers(text string) string {
	if strings.ContainsAny(text, "-,") {
		return "layers " + text
	}
	return "layer " + text
}

// Span writes all numbers from first to last as 0-3, or 7 where they are one.
func Span(first, last int) string {
	if first == last {
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d-%d", first, last)
}

// Together returns each different thing once, in the order in which they come first, with the numbers that have it.
func Together[T comparable](things []T, numbers []int) (different []T, texts []string) {
	have := map[T][]int{}
	for i, t := range things {
		if have[t] == nil {
			different = append(different, t)
		}
		have[t] = append(have[t], numbers[i])
	}
	for _, t := range different {
		texts = append(texts, Text(have[t]))
	}
	return different, texts
}
