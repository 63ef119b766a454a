package dim

import "strings"

// Joined lists words as a sentence does: "a, b and c".
func Joined(list []string) string {
	last := len(list) - 1
	if last < 1 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:last], ", ") + " and " + list[last]
}
