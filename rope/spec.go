package rope

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// Spec names a method and the parameters that were given for it; what is not
// given keeps the method's default. Written as "name" or "name:key=value,…":
//
//	yarn:factor=4,original_max_position_embeddings=8192
type Spec struct {
	Axis   Axis
	Name   string
	Params map[string]Value // nil if none was given
}

// Context is what is known of the model around the attention. Zero fields are
// unknown.
type Context struct {
	Length   int64   // tokens that the edited model is meant for (--context)
	Original int64   // tokens that the model was trained on (max_position_embeddings of config.json)
	Theta    float64 // rope_theta of config.json
	Unread   error   // why config.json could not be read; nil if it was read or is missing

	Reachable int64 // tokens that the attention is good for, with the scalings beside a position map (function Reachable)
}

// ParseSpec reads a spec. Unknown methods and keys, keys given twice, values
// of the wrong type or outside the allowed range are errors that name the key
// and what is allowed, and what was probably meant. Spaces around names and
// values are dropped, and the case of names, keys and words does not matter.
// Numbers of tokens may be written as ParseTokens reads them.
func ParseSpec(axis Axis, text string) (Spec, error) {
	if text = strings.TrimSpace(text); strings.ContainsAny(text, "\n\r") {
		return Spec{}, fmt.Errorf("%v: %.60q has a line end; write the method with its keys on one line", axis, text)
	}
	name, list, colon := strings.Cut(text, ":")
	name = strings.TrimSpace(name)
	if err := misshapen(axis, text); err != nil {
		return Spec{}, err
	}
	m, err := Lookup(axis, name)
	if elsewhere := (*AxisError)(nil); errors.As(err, &elsewhere) {
		elsewhere.Spec = strings.TrimSpace(text)
	}
	if err != nil {
		return Spec{}, err
	}
	s := Spec{Axis: axis, Name: m.Name}
	if !colon {
		return s, nil
	}
	for i, item := range strings.Split(list, ",") {
		key, value, found := strings.Cut(item, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !found || key == "" {
			return Spec{}, fmt.Errorf("%s: %q is not key=value%s", m.title(), short.Name(item), m.shape(item, i == 0))
		}
		p, err := m.param(m.spelled(key))
		if err != nil {
			return Spec{}, err
		}
		v, err := p.read(value)
		if err != nil {
			return Spec{}, fmt.Errorf("%s: %s=%q %w; it takes %s", m.title(), p.Name, short.Name(value), err, p.takes())
		}
		if err := s.set(m, p, v); err != nil {
			return Spec{}, err
		}
	}
	return s, nil
}

// set adds one checked parameter.
func (s *Spec) set(m Method, p Param, v Value) error {
	if _, twice := s.Params[p.Name]; twice {
		return fmt.Errorf("%s: %s is given twice", m.title(), p.Name)
	}
	if err := p.check(v); err != nil {
		return fmt.Errorf("%s: %w", m.title(), err)
	}
	if s.Params == nil {
		s.Params = map[string]Value{}
	}
	s.Params[p.Name] = v
	return nil
}

// String returns the spec in its canonical form, parameters in the method's
// order; ParseSpec reads it back to an equal Spec.
func (s Spec) String() string {
	if len(s.Params) == 0 {
		return s.Name
	}
	m, _ := Lookup(s.Axis, s.Name) // an unknown method prints too, its keys sorted
	place := func(key string) int {
		if i := slices.Index(m.keys(), key); i >= 0 {
			return i
		}
		return len(m.Params)
	}
	keys := slices.Sorted(maps.Keys(s.Params))
	slices.SortStableFunc(keys, func(a, b string) int { return place(a) - place(b) })
	for i, key := range keys {
		keys[i] = key + "=" + s.Params[key].String()
	}
	return s.Name + ":" + strings.Join(keys, ",")
}

// Apply returns the attention as the method changes it, and warnings about
// settings that are allowed but probably not meant. a and what it points to
// are unchanged. The error says which key, or which property of a, prevents
// it.
func (s Spec) Apply(a Attention, c Context) (Attention, []string, error) {
	edited, _, warnings, err := s.Resolve(a, c)
	return edited, warnings, err
}

// Resolve does what Apply does, and also returns the parameters that the method used:
// those that were given, and the values it chose for the others, in the order of the
// method's Params.
func (s Spec) Resolve(a Attention, c Context) (Attention, []Setting, []string, error) {
	m, err := Lookup(s.Axis, s.Name)
	if err != nil {
		return Attention{}, nil, nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(s.Params)) {
		p, err := m.param(key)
		if err != nil {
			return Attention{}, nil, nil, err
		}
		if err := p.check(s.Params[key]); err != nil {
			return Attention{}, nil, nil, fmt.Errorf("%s: %w", m.title(), err)
		}
	}
	if err := c.check(); err != nil {
		return Attention{}, nil, nil, fmt.Errorf("%s: %w", m.title(), err)
	}
	params, err := m.settle(s.Params, c)
	if err != nil {
		return Attention{}, nil, nil, fmt.Errorf("%s: %w", m.title(), err)
	}
	// Methods see pairs that turn forwards; those that turn the other way do so afterwards.
	senses := a.Encoding.Senses()
	e := edit{Attention: a.Clone(), Context: c, method: m, params: params, used: &settings{}}
	e.Encoding = a.Encoding.WithSenses(senses)
	var started []string
	if m.scales() {
		if e.Attention, started, err = s.start(e.Attention, c); err != nil {
			return Attention{}, nil, nil, fmt.Errorf("%s: %w", m.title(), err)
		}
	}
	e.own = e.Encoding.LengthDependent
	if m.scales() && !m.slopes && len(e.Encoding.Frequencies) == 0 && !e.Distance.IsZero() {
		return Attention{}, nil, nil, fmt.Errorf("%s: %w", m.title(), e.checkRotation())
	}
	if m.scales() {
		e.Encoding.LengthDependent = LengthDependent{} // a method's frequencies are for every length, or it says otherwise
	}
	edited, warnings, err := m.apply(e)
	if err != nil {
		return Attention{}, nil, nil, fmt.Errorf("%s: %w", m.title(), err)
	}
	if err := edited.OnePosition(); err != nil && edited.Encoding.Axes != nil {
		return Attention{}, nil, nil, fmt.Errorf("%s: the model gives each token several positions (time, height and width), and %w", m.title(), err)
	}
	for i, omega := range edited.Encoding.Frequencies {
		if math.IsNaN(omega) || math.IsInf(omega, 0) {
			return Attention{}, nil, nil, fmt.Errorf("%s: pair %d would turn by %g per position; give less extreme numbers", m.title(), i, omega)
		}
	}
	warnings = append(started, warnings...)
	for i, w := range warnings {
		warnings[i] = m.title() + ": " + w
	}
	edited.Encoding = edited.Encoding.WithSenses(senses)
	return edited, e.used.of(m, params), warnings, nil
}

// settle turns shares of the context into numbers.
func (m Method) settle(params map[string]Value, c Context) (map[string]Value, error) {
	settled := maps.Clone(params)
	for key, v := range params {
		if !v.share {
			continue
		}
		if c.Length == 0 {
			return nil, fmt.Errorf("%s=%v is a share of the context; give the context (--context)", key, v)
		}
		whole := Value{kind: Tokens, number: math.Floor(float64(c.Length) / v.number)}
		p, err := m.param(key)
		if err != nil {
			return nil, err
		}
		if err := p.check(whole); err != nil {
			return nil, fmt.Errorf("%s=%v of the context %d: %w", key, v, c.Length, err)
		}
		settled[key] = whole
	}
	return settled, nil
}

func (c Context) check() error {
	if c.Length < 0 || c.Length > maxWhole {
		return fmt.Errorf("context length %d must be between 0 and 2^53", c.Length)
	}
	if c.Original < 0 || c.Original > maxWhole {
		return fmt.Errorf("trained context %d must be between 0 and 2^53", c.Original)
	}
	if c.Theta < 0 || math.IsNaN(c.Theta) || math.IsInf(c.Theta, 0) {
		return errors.New("rope_theta of the configuration must be a finite number ≥ 0")
	}
	return nil
}

// edit is what a method works on: a copy of the attention that it may change,
// the context, and its parameters.
type edit struct {
	Attention
	Context
	method Method
	params map[string]Value
	own    LengthDependent // the graph's own frequencies by length, which a scaling replaces
	used   *settings       // what the method takes its parameters for; nil notes nothing
}

// given says whether the parameter was given.
func (e edit) given(key string) bool {
	_, ok := e.params[key]
	return ok
}

// value returns the given value of a parameter, else its default.
func (e edit) value(key string) Value {
	if v, ok := e.params[key]; ok {
		e.used.note(key, v, Given)
		return v
	}
	for _, p := range e.method.Params {
		if p.Name == key {
			e.used.note(key, p.Default, Default)
			return p.Default
		}
	}
	return Value{}
}

func (e edit) number(key string) float64 { return e.value(key).number }
func (e edit) integer(key string) int64  { return int64(e.value(key).number) }
func (e edit) isTrue(key string) bool    { return e.value(key).number != 0 }
