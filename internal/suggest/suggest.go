package suggest

import (
	"fmt"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// Nearest returns the name that most resembles word, "" where none does. Case
// does not matter. Of equally near names the first one counts.
func Nearest(word string, names []string) string {
	best, bestDistance := "", len(word)/3+2
	for _, name := range names {
		if d := distance(strings.ToLower(word), strings.ToLower(name)); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	return best
}

// Hint returns ` (did you mean "x"?)` for the nearest name, or nothing where
// none is near.
func Hint(word string, names []string) string {
	if best := Nearest(word, names); best != "" {
		return fmt.Sprintf(" (did you mean %q?)", short.Name(best))
	}
	return ""
}

// Same says whether two names are one but for case, and _ in the place of -.
func Same(a, b string) bool { return fold(a) == fold(b) }

func fold(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", "-") }

// distance counts the bytes to insert, delete or replace between a and b
// (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
