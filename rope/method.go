package rope

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/internal/suggest"
)

// Axis is one of the independent directions in which an attention is edited.
// An edit names at most one method per axis and [Part].
type Axis uint8

const (
	// ScalingAxis methods change frequencies, gain and scale.
	ScalingAxis Axis = iota
	// PositionsAxis methods change the position map (Attention.Bands).
	PositionsAxis
	// MaskAxis methods change which keys a query sees.
	MaskAxis
)

// String returns the axis as the command line spells it.
func (x Axis) String() string {
	switch x {
	case ScalingAxis:
		return "scaling"
	case PositionsAxis:
		return "positions"
	case MaskAxis:
		return "mask"
	}
	return fmt.Sprintf("axis %d", uint8(x))
}

// Method describes one way to edit an attention: its parameters, what it
// computes and where it comes from. Methods are made in this package, one file
// each, and listed in its table.
type Method struct {
	Axis      Axis
	Part      Part // what of the axis it sets
	Name      string
	Doc       string  // what it does, in a sentence or two
	Formula   string  // what it computes
	Source    string  // paper, equation
	Measured  string  // when it was seen to help, and with which parameters; "" if docs/choosing.md has no measurement
	Neutral   bool    // leaves its axis as the graph has it
	FineTuned bool    // meant for models that were fine-tuned with it
	RawCache  bool    // needs keys that are cached un-rotated (Attention.Cache)
	ByLength  bool    // takes length=: with run each call has frequencies of its own
	OneCall   bool    // the result depends on how a text is cut into calls
	Params    []Param // in the order in which they are written
	HF        bool    // Name is also a rope_type of Hugging Face dictionaries

	slopes bool // scales slopes by distance too

	apply func(edit) (Attention, []string, error)
}

// Param describes one parameter of a method.
type Param struct {
	Name    string
	Kind    Kind
	Words   []string // of kind Word: what is allowed
	Default Value    // the zero Value if there is none; Doc then says what absence means
	Rule    Rule     // which values are allowed
	Doc     string

	Counts    bool // of kind Whole: a number of tokens, which ParseSpec reads as 8k too
	Stretches bool // says how many times longer the context becomes (Reachable)
}

// Rule restricts the numbers that a parameter takes. The zero Rule allows all.
type Rule struct {
	Text  string // for example "≥ 1"
	allow func(float64) bool
}

var (
	atLeastZero = Rule{"≥ 0", func(x float64) bool { return x >= 0 }}
	atLeastOne  = Rule{"≥ 1", func(x float64) bool { return x >= 1 }}
	aboveZero   = Rule{"> 0", func(x float64) bool { return x > 0 }}
	aboveOne    = Rule{"> 1", func(x float64) bool { return x > 1 }}
	share       = Rule{"> 0 and ≤ 1", func(x float64) bool { return x > 0 && x <= 1 }}
)

// Methods walks over all methods, axis by axis, in the order of the table.
func Methods() iter.Seq[Method] { return slices.Values(table()) }

// Lookup returns the method of that name; case does not matter, and _ counts as
// -. The error lists the names that the axis knows and suggests the nearest one,
// or says to which axis the name belongs.
func Lookup(axis Axis, name string) (Method, error) {
	var names []string
	var other *Method
	for m := range Methods() {
		if same := suggest.Same(m.Name, name); m.Axis != axis {
			if same {
				other = &m
			}
			continue
		} else if same {
			return m, nil
		}
		names = append(names, m.Name)
	}
	if len(names) == 0 {
		return Method{}, fmt.Errorf("%v: unknown method %q: this version has no %v methods", axis, short.Name(name), axis)
	}
	if other != nil {
		return Method{}, &AxisError{Asked: axis, Name: other.Name, Axis: other.Axis}
	}
	return Method{}, fmt.Errorf("%v: unknown method %q%s; methods: %s", axis, short.Name(name), meant(name, names), strings.Join(names, ", "))
}

// AxisError says that a method was given for another axis than its own.
type AxisError struct {
	Asked, Axis Axis   // the axis that was given, and the method's own
	Name        string // of the method
	Spec        string // as it was given; empty when it was only looked up
}

func (e *AxisError) Error() string {
	spec := e.Spec
	if spec == "" {
		spec = e.Name
	}
	return fmt.Sprintf("%v: %s is a method of --%v; write --%v %s", e.Asked, e.Name, e.Axis, e.Axis, spec)
}

// Suggest returns the name of the method, of any axis, that is nearest to a
// word, or "" if none is near.
func Suggest(word string) string {
	var names []string
	for m := range Methods() {
		names = append(names, m.Name)
	}
	return suggest.Nearest(word, names)
}

// title names the method in errors and warnings: "scaling yarn".
func (m Method) title() string { return m.Axis.String() + " " + m.Name }

// scales says whether the method changes the scaling that there is.
func (m Method) scales() bool { return m.Axis == ScalingAxis && !m.Neutral }

// keys lists the names of the parameters.
func (m Method) keys() []string {
	keys := make([]string, len(m.Params))
	for i, p := range m.Params {
		keys[i] = p.Name
	}
	return keys
}

// param finds the parameter of that name; the error lists the allowed keys.
func (m Method) param(key string) (Param, error) {
	keys := m.keys()
	if i := slices.Index(keys, key); i >= 0 {
		return m.Params[i], nil
	}
	if len(keys) == 0 {
		return Param{}, fmt.Errorf("%s: unknown key %q: the method takes none", m.title(), short.Name(key))
	}
	return Param{}, fmt.Errorf("%s: unknown key %q%s; keys: %s", m.title(), short.Name(key), suggest.Hint(key, keys), strings.Join(keys, ", "))
}

// check says whether the value has the parameter's kind and obeys its rule.
func (p Param) check(v Value) error {
	if p.Kind == Tokens && v.kind == Whole {
		v.kind = Tokens
	}
	if v.kind != p.Kind {
		return fmt.Errorf("%s=%v is %v; it takes %v", p.Name, v, v.kind, p.Kind)
	}
	if err := v.check(); err != nil {
		return fmt.Errorf("%s=%v %w", p.Name, v, err)
	}
	if p.Kind == Word && !slices.Contains(p.Words, v.text) {
		return fmt.Errorf("%s=%q%s must be %s", p.Name, short.Name(v.text), suggest.Hint(v.text, p.Words), strings.Join(p.Words, " or "))
	}
	if p.Rule.allow == nil || v.share {
		return nil
	}
	for _, x := range v.Numbers() {
		if !p.Rule.allow(x) {
			return fmt.Errorf("%s=%v must be %s", p.Name, v, p.Rule.Text)
		}
	}
	return nil
}
