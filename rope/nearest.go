package rope

import "fmt"

// suggest returns ` (did you mean "x"?)` for the name nearest to word, or
// nothing where none is near.
func suggest(word string, names []string) string {
	if best := nearest(word, names); best != "" {
		return fmt.Sprintf(" (did you mean %q?)", best)
	}
	return ""
}

// nearest returns the name nearest to word, "" where none is near.
func nearest(word string, names []string) string {
	best, bestDistance := "", len(word)/3+2
	for _, name := range names {
		if d := editDistance(word, name); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	return best
}

// editDistance counts the bytes to insert, delete or replace between a and b
// (Levenshtein).
func editDistance(a, b string) int {
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
