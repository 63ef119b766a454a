package modelconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/tidwall/sjson"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// baseAlone is the method that sets a base and is no rope_type.
const baseAlone = "theta"

// ours are parameters of scalings that transformers does not know.
var ours = []string{"length", "ramp", "tau", "temperature", "base"}

// ownShare reports whether partial_rotary_factor is a scaling's own parameter, and not the share of
// the channels that form pairs.
func ownShare(scaling string) bool {
	m, err := rope.Lookup(rope.ScalingAxis, scaling)
	return err == nil && slices.ContainsFunc(m.Params, func(p rope.Param) bool { return p.Name == partial && p.Default.Kind() != rope.Absent })
}

const partial = "partial_rotary_factor"

// why is what keeps a configuration from being read, without its path.
func (c Config) why() error {
	if inner := errors.Unwrap(c.Unread); inner != nil {
		return inner
	}
	return c.Unread
}

// rotations is what the file says of the layers of a graph that has so many, by their place.
func (c Config) rotations(count int) func(place int) (Rotation, bool) {
	of := c.layersOf(count, func(i int) any { r := c.Rotation(i); r.Unread = nil; return r })
	return func(place int) (Rotation, bool) {
		n, known := of(place)
		return c.Rotation(n), known
	}
}

// scale writes scalings as transformers reads them: in rope_parameters from its version 5 on,
// there perhaps by types of layers, in rope_scaling with rope_theta beside it before.
func (t *Text) scale(under string, now Meaning) (warnings []string, err error) {
	if !slices.ContainsFunc(now.Layers, func(l Layer) bool { return l.Scaling != nil }) {
		return nil, nil
	}
	if warnings = inexpressible(now); warnings != nil {
		return warnings, nil
	}
	was, newer := Parse("", t.Bytes()), under+"rope_parameters"
	groups := was.groups(now)
	if warning := ungrouped(groups, now); warning != "" {
		return []string{warning}, nil
	}
	tried := t.clone()
	for _, g := range groups {
		base, scaling, warning := g.scaling(now)
		switch {
		case warning != "":
			warnings = append(warnings, warning)
		case scaling == nil:
		case g.kind != "":
			err = tried.dictionary(newer+"."+g.kind, scaling, base)
		case t.has(newer):
			if err = tried.dictionary(newer, scaling, base); err == nil && t.has(under+"rope_theta") {
				err = tried.setBase(under+"rope_theta", base) // an older key of the same meaning
			}
		default:
			err = tried.older(under, scaling, base)
		}
		if err != nil {
			return nil, err
		}
	}
	if warnings == nil {
		if untrue := Parse("", tried.Bytes()).untrue(was, now); untrue != "" {
			warnings = []string{untrue}
		}
	}
	if warnings == nil {
		*t = tried
	}
	return warnings, nil
}

// inexpressible says which scalings no configuration can express.
func inexpressible(now Meaning) (warnings []string) {
	for _, l := range now.Layers {
		w := ""
		switch {
		case l.Scaling == nil:
		case l.Gaps && !ownShare(l.Scaling.Name):
			w = fmt.Sprintf("it cannot express the scaling %s of layers in which some pairs do not rotate, so it does not mention it", l.Scaling.Name)
		case l.Scaling.Name != baseAlone:
			if m, err := rope.Lookup(rope.ScalingAxis, l.Scaling.Name); err != nil || !m.HF {
				w = fmt.Sprintf("it cannot express the scaling %s, so it does not mention it", l.Scaling.Name)
			}
		}
		if w != "" && !slices.Contains(warnings, w) {
			warnings = append(warnings, w)
		}
	}
	return warnings
}

// group are layers for which the file has one dictionary.
type group struct {
	kind   string // the type of layers that it is for, "" where it is for all
	layers []int  // places in Meaning.Layers
}

// groups returns the dictionaries of the file with the layers that each is for.
func (c Config) groups(now Meaning) (list []group) {
	parameters := c.keys.object("rope_parameters")
	types := map[string][]int{}
	of := c.layersOf(len(now.Layers), func(n int) any { return c.layerType(n) })
	for i, l := range now.Layers {
		if n, known := of(i); known && l.Turns {
			types[c.layerType(n)] = append(types[c.layerType(n)], i)
		}
	}
	byType := false
	for kind := range parameters {
		if parameters.object(kind) == nil {
			continue
		}
		byType = true
		if len(types[kind]) > 0 {
			list = append(list, group{kind, types[kind]})
		}
	}
	if byType {
		slices.SortFunc(list, func(a, b group) int { return strings.Compare(a.kind, b.kind) })
		return list
	}
	all := group{}
	for i, l := range now.Layers {
		if l.Turns {
			all.layers = append(all.layers, i)
		}
	}
	return []group{all}
}

// ungrouped says of layers with a scaling that none of the file's dictionaries is for them.
func ungrouped(groups []group, now Meaning) string {
	for i, l := range now.Layers {
		for _, g := range groups {
			if slices.Contains(g.layers, i) {
				l.Scaling = nil
			}
		}
		if l.Scaling != nil {
			return fmt.Sprintf("its rope_parameters are for types of layers, but it does not say the type of layer %d, so they are unchanged", i)
		}
	}
	return ""
}

// scaling is the one scaling of a group's layers, and the base that it starts from. The warning says
// why there is none where some layers have one.
func (g group) scaling(now Meaning) (base float64, one *Scaling, warning string) {
	var bases []float64
	for _, i := range g.layers {
		l := now.Layers[i]
		if l.Scaling == nil {
			continue
		}
		if one != nil && !one.equal(l.Scaling) {
			return 0, nil, fmt.Sprintf("it has one scaling for layers that now have %v and %v, so it mentions neither", one, l.Scaling)
		}
		one = l.Scaling
		theta := l.Base
		for _, s := range one.Used {
			if s.Name == "rope_theta" && s.From == rope.Given {
				theta = s.Value.Numbers()[0]
			}
		}
		if !slices.Contains(bases, theta) {
			bases = append(bases, theta)
		}
	}
	switch {
	case one == nil:
		return 0, nil, ""
	case slices.Contains(bases, 0):
		return 0, nil, fmt.Sprintf("the frequencies that the scaling %v starts from follow no rope_theta, so its rotation is unchanged", one)
	case len(bases) > 1:
		slices.Sort(bases)
		return 0, nil, fmt.Sprintf("the scaling %v starts from several rope_theta (%s), but it has one for all layers, so its rotation is unchanged", one, numbersText(bases))
	}
	return bases[0], one, ""
}

// equal reports whether two scalings differ in what they were measured to start from alone.
func (s *Scaling) equal(other *Scaling) bool {
	given := func(s *Scaling) []rope.Setting {
		return slices.DeleteFunc(slices.Clone(s.Used), func(x rope.Setting) bool { return x.From == rope.Measured })
	}
	return s.Name == other.Name && reflect.DeepEqual(given(s), given(other))
}

func numbersText(list []float64) string {
	var texts []string
	for _, x := range list {
		texts = append(texts, fmt.Sprintf("%g", x))
	}
	return strings.Join(texts, ", ")
}

// dictionary writes a scaling under a key of rope_parameters. What the method takes by itself is left
// out, as transformers takes the same. Keys that belong to no scaling stay.
func (t *Text) dictionary(key string, scaling *Scaling, base float64) error {
	name := scaling.Name
	if name == baseAlone {
		name = "default"
	}
	d, err := sjson.SetBytes([]byte("{}"), "rope_type", name)
	for _, s := range scaling.Used {
		own := s.From == rope.Default || s.From == rope.Computed || s.Name == "rope_theta" || slices.Contains(ours, s.Name) || s.Name == partial && !ownShare(name)
		if err == nil && !own {
			var value []byte
			if value, err = json.Marshal(s.Value); err == nil {
				d, err = sjson.SetRawBytes(d, s.Name, value)
			}
		}
	}
	if err == nil && base != 0 {
		d, err = sjson.SetBytes(d, "rope_theta", near(base, t.number(key+".rope_theta")))
	}
	old := keys{"": t.Get(key)}.object("")
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if err == nil && !scales(name) && !(name == partial && ownShare(scaling.Name)) {
			d, err = sjson.SetRawBytes(d, name, old[name])
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return t.replace(key, d)
}

// older writes a scaling as transformers before version 5 reads it.
func (t *Text) older(under string, scaling *Scaling, base float64) error {
	key := under + "rope_theta"
	for _, name := range []string{"global_rope_theta", "rotary_emb_base"} {
		if !t.has(key) && t.has(under+name) {
			key = under + name
		}
	}
	given := slices.ContainsFunc(scaling.Used, func(s rope.Setting) bool { return s.Name == "rope_theta" && s.From == rope.Given })
	if given || t.has(key) {
		if err := t.setBase(key, base); err != nil {
			return err
		}
	}
	switch {
	case scaling.Name != baseAlone:
		return t.dictionary(under+"rope_scaling", scaling, 0)
	case t.has(under + "rope_scaling"):
		return t.replace(under+"rope_scaling", json.RawMessage("null"))
	}
	return nil
}

// setBase writes a base, unless the file has it.
func (t *Text) setBase(key string, base float64) error {
	if now := t.number(key); near(base, now) == now {
		return nil
	}
	return t.Set(key, base)
}

// near is the base that a file gives where a measured one is the same, else the measured one: a graph
// has it to the precision of its frequencies.
func near(measured, given float64) float64 {
	if math.Abs(measured-given) <= 1e-3*math.Abs(given) {
		return given
	}
	return measured
}

// scales reports whether a key of a dictionary belongs to a scaling.
func scales(key string) bool {
	if slices.Contains([]string{"rope_type", "type", "rope_theta"}, key) {
		return true
	}
	for m := range rope.Methods() {
		if m.Axis == rope.ScalingAxis && m.HF && key != "partial_rotary_factor" &&
			slices.ContainsFunc(m.Params, func(p rope.Param) bool { return p.Name == key }) {
			return true
		}
	}
	return false
}

// untrue says what the file says of the layers that is not so: of those with a scaling, or of others
// that were described before. "" is nothing.
func (c Config) untrue(was Config, now Meaning) string {
	if c.Unread != nil {
		return fmt.Sprintf("with the new values it could not be read (%v), so its rotation is unchanged", c.why())
	}
	said, saidBefore := c.rotations(len(now.Layers)), was.rotations(len(now.Layers))
	for i, l := range now.Layers {
		if !l.Turns {
			continue
		}
		before, knownBefore := saidBefore(i)
		after, known := said(i)
		switch {
		case !known || !knownBefore:
			if !reflect.DeepEqual(c.keys, was.keys) {
				return fmt.Sprintf("it names %d layers and the graph has %d attention layers, so it cannot say which of them are scaled", c.Layers(), len(now.Layers))
			}
		case l.Scaling == nil && !before.same(after):
			return fmt.Sprintf("it would describe layer %d as scaled, which it is not, so it does not mention the scaling of the others", i)
		case l.Scaling != nil && after.Unread == nil && !after.describes(l.Scaling):
			return fmt.Sprintf("it would not describe layer %d as scaled by %v, so it does not mention the scaling", i, l.Scaling)
		}
	}
	return ""
}

// same reports whether two rotations turn by the same frequencies.
func (r Rotation) same(other Rotation) bool {
	return r.Theta == other.Theta && reflect.DeepEqual(r.Scaling, other.Scaling)
}

// describes reports whether a rotation is scaled by a method.
func (r Rotation) describes(s *Scaling) bool {
	if s.Name == baseAlone {
		return r.Scaling.Name == ""
	}
	return r.Scaling.Name == s.Name
}

// Base is the change of a base within a dictionary: "rope_theta 100000.0 → 10000"; "" is none.
func (c Change) Base() string {
	const name = "rope_theta"
	before, after := keys{"": c.Before}.object("")[name], keys{"": c.After}.object("")[name]
	if before == nil || after == nil || (keys{"": before}).number("").Value == (keys{"": after}).number("").Value {
		return ""
	}
	return Change{name, before, after}.String()
}
