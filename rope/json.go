package rope

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// An Attention is written as JSON under the field's usual names; what has its zero
// value is left out. Sinks are no part of it: they may be −∞, which JSON has not.

var (
	layoutNames    = []string{"half", "interleaved"}
	precisionNames = []string{"float32", "float16", "bfloat16"}
	cacheNames     = []string{"rotated", "raw"}
	documentNames  = []string{"none", "intra", "anchor"}
)

// String returns "half" or "interleaved".
func (l Layout) String() string {
	text, err := l.MarshalText()
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// MarshalText writes "half" or "interleaved".
func (l Layout) MarshalText() ([]byte, error) { return nameOf(layoutNames, l, "layout") }

// UnmarshalText reads what MarshalText wrote.
func (l *Layout) UnmarshalText(text []byte) error { return valueOf(layoutNames, l, text, "layout") }

// MarshalText writes "float32", "float16" or "bfloat16".
func (p Precision) MarshalText() ([]byte, error) { return nameOf(precisionNames, p, "precision") }

// UnmarshalText reads what MarshalText wrote.
func (p *Precision) UnmarshalText(text []byte) error {
	return valueOf(precisionNames, p, text, "precision")
}

// MarshalText writes "rotated" or "raw".
func (c Cache) MarshalText() ([]byte, error) { return nameOf(cacheNames, c, "cache") }

// UnmarshalText reads what MarshalText wrote.
func (c *Cache) UnmarshalText(text []byte) error { return valueOf(cacheNames, c, text, "cache") }

// MarshalText writes "none", "intra" or "anchor".
func (d Documents) MarshalText() ([]byte, error) { return nameOf(documentNames, d, "documents") }

// UnmarshalText reads what MarshalText wrote.
func (d *Documents) UnmarshalText(text []byte) error {
	return valueOf(documentNames, d, text, "documents")
}

func nameOf[T ~uint8](names []string, x T, what string) ([]byte, error) {
	if int(x) >= len(names) {
		return nil, fmt.Errorf("%s %d has no name", what, x)
	}
	return []byte(names[x]), nil
}

func valueOf[T ~uint8](names []string, x *T, text []byte, what string) error {
	i := slices.Index(names, string(text))
	if i < 0 {
		return fmt.Errorf("%s %q is none of %q", what, short.Name(string(text)), short.Names(names))
	}
	*x = T(i)
	return nil
}

// MarshalJSON writes a number, a switch, a list of numbers, or a text for a word and
// for a share of the context.
func (v Value) MarshalJSON() ([]byte, error) {
	switch {
	case v.kind == Switch:
		return json.Marshal(v.number != 0)
	case v.kind == Reals:
		return json.Marshal(v.list)
	case v.kind == Word || v.share:
		return json.Marshal(v.String())
	case v.kind == Absent:
		return []byte("null"), nil
	}
	return json.Marshal(v.number)
}

// UnmarshalJSON reads what MarshalJSON wrote. A number is of kind Real: JSON does not
// tell it from an integer.
func (v *Value) UnmarshalJSON(data []byte) error {
	var any any
	if err := json.Unmarshal(data, &any); err != nil {
		return err
	}
	switch x := any.(type) {
	case nil:
		*v = Value{}
	case bool:
		*v = Bool(x)
	case float64:
		*v = Number(x)
	case string:
		*v = Text(x)
	default:
		var list []float64
		if err := json.Unmarshal(data, &list); err != nil {
			return err
		}
		*v = List(list...)
	}
	return nil
}
