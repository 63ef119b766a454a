package rope

import (
	"cmp"
	"fmt"
)

// Part is what a method sets of its axis. Methods of one axis go together where each sets
// another part, such as a scaling of frequencies and a temperature. The order of the parts is
// the order in which methods of one axis are applied.
type Part uint8

const (
	// WholeAxis is the part of methods that no other of their axis goes with.
	WholeAxis Part = iota
	// TemperaturePart is how the query's position multiplies scores. It is set before frequencies: base=
	// of a temperature is about those in the graph.
	TemperaturePart
	// FrequencyPart is how fast pairs rotate, with the gain.
	FrequencyPart
	// DirectionPart is whether a query sees later keys.
	DirectionPart
	// WindowPart is how far a query sees.
	WindowPart
	// DocumentPart is who sees whom where tokens have document ids.
	DocumentPart
)

// String names what is set.
func (p Part) String() string {
	switch p {
	case TemperaturePart:
		return "a temperature"
	case FrequencyPart:
		return "frequencies"
	case DirectionPart:
		return "the direction"
	case WindowPart:
		return "a window"
	case DocumentPart:
		return "documents"
	}
	return "the whole axis"
}

// part is what the spec's method sets. Of an unknown method it is everything.
func (s Spec) part() Part {
	m, err := Lookup(s.Axis, s.Name)
	if err != nil {
		return WholeAxis
	}
	return m.Part
}

// CompareOrder orders specs as they are applied: by axis, and by what they set of it.
func CompareOrder(a, b Spec) int {
	return cmp.Or(cmp.Compare(a.Axis, b.Axis), cmp.Compare(a.part(), b.part()))
}

// CheckTogether returns an error if two specs cannot both be applied to one attention. What they
// make of a certain attention may still be an error.
func CheckTogether(a, b Spec) error {
	mine, other := a.part(), b.part()
	switch {
	case a.Axis != b.Axis:
		return nil
	case mine == WholeAxis || other == WholeAxis:
		return fmt.Errorf("%v %v and %v cannot be combined; leave one of them out", a.Axis, a, b)
	case mine == other:
		return fmt.Errorf("%v %v and %v cannot be combined, because both set %v; leave one of them out", a.Axis, a, b, mine)
	}
	return nil
}
