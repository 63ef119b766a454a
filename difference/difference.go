package difference

import "strings"

// Difference is one difference of a model from another one, or from what is claimed of it.
type Difference struct {
	What     string `json:"what"`     // the kind of thing, or what is other about it
	Where    string `json:"where"`    // a node, a value, a key or layers as 0-3; "" is the whole model
	Expected string `json:"expected"` // of the first model, or as it is claimed; "" without
	Found    string `json:"found"`    // "" without
}

// String is the difference in words.
func (d Difference) String() string {
	text := strings.TrimSpace(d.Where + " " + d.What)
	if d.Expected != "" && d.Found != "" {
		text += ": " + d.Found + " instead of " + d.Expected
	}
	return text
}
