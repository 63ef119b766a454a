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
// there perhaps by types of layers, in rope_scaling with rope_theta beside it before. The model was trained on so many
// tokens, 0 where that is not known.
func (t *Text) scale(under string, now Meaning, trained int64) (warnings []string, err error) {
	if !slices.ContainsFunc(now.Layers, func(l Layer) bool { return l.Scaling != nil }) {
		return nil, nil
	}
	was := Parse("", t.Bytes())
	groups := was.groups(now)
	if warning := ungrouped(groups, now); warning != "" {
		return []string{warning}, nil
	}
	tried := t.clone()
	for _, g := range groups {
		warning, err := tried.describe(under, g, now, trained)
		if err != nil {
			return nil, err
		}
		if warning != "" && !slices.Contains(warnings, warning) {
			warnings = append(warnings, warning)
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

// describe writes the scaling of a group's layers in the first form that gives what they compute. The warning says
// why there is none.
func (t *Text) describe(under string, g group, now Meaning, trained int64) (warning string, err error) {
	base, one, warning := g.scaling(now)
	if warning != "" || one == nil {
		return warning, nil
	}
	start := base
	if start == 0 {
		start = Parse("", t.Bytes()).Theta
	}
	for _, f := range one.forms(start, trained) {
		tried := t.clone()
		if err := tried.write(under, g, f, one.Scaling); err != nil {
			return "", err
		}
		after := Parse("", tried.Bytes())
		said := after.rotations(len(now.Layers))
		untrue := slices.ContainsFunc(g.layers, func(i int) bool {
			claim, known := said(i)
			return now.Layers[i].Scaling != nil && known && !claim.computed(now.Layers[i], after.Context(i))
		})
		if !untrue && (t.has(under+"rope_parameters") || !after.needsNewer(f.name)) {
			*t = tried
			return "", nil
		}
	}
	return one.inexpressible(base), nil
}

// write puts a form where the file has the dictionary of a group.
func (t *Text) write(under string, g group, f form, scaling *Scaling) error {
	newer := under + "rope_parameters"
	switch {
	case g.kind != "":
		return t.dictionary(newer+"."+g.kind, f)
	case t.has(newer):
		if err := t.dictionary(newer, f); err != nil || !t.has(under+"rope_theta") {
			return err
		}
		return t.setBase(under+"rope_theta", f.base) // an older key of the same meaning
	}
	return t.older(under, f, scaling)
}

// inexpressible says why no configuration can express a layer's scaling.
func (l Layer) inexpressible(base float64) string {
	switch {
	case base == 0:
		return fmt.Sprintf("the frequencies that the scaling %v starts from follow no rope_theta, so its rotation is unchanged", l.Scaling)
	case l.Now != nil && l.Now.Encoding.LengthDependent.Trained > 0:
		return fmt.Sprintf("it cannot express length=run of the scaling %s, with which each call turns cached keys anew, so it does not mention it", l.Scaling.Name)
	case l.Gaps && !ownShare(l.Scaling.Name):
		return fmt.Sprintf("it cannot express the scaling %s of layers in which some pairs do not rotate, so it does not mention it", l.Scaling.Name)
	}
	return fmt.Sprintf("it cannot express the scaling %s, so it does not mention it", l.Scaling.Name)
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
		switch {
		case l.Scaling != nil && !l.Turns:
			return fmt.Sprintf("it cannot express the scaling %s of layers that do not rotate, so it does not mention it", l.Scaling.Name)
		case l.Scaling != nil:
			return fmt.Sprintf("its rope_parameters are for types of layers, but it does not say the type of layer %d, so they are unchanged", i)
		}
	}
	return ""
}

// scaling is a layer with the one scaling of a group, and the base that it starts from; nil where none has one. The
// warning says why there is no such scaling.
func (g group) scaling(now Meaning) (base float64, one *Layer, warning string) {
	var bases []float64
	for _, i := range g.layers {
		l := now.Layers[i]
		if l.Scaling == nil {
			continue
		}
		if one != nil && !one.Scaling.equal(l.Scaling) {
			return 0, nil, fmt.Sprintf("it has one scaling for layers that now have %v and %v, so it mentions neither", one.Scaling, l.Scaling)
		}
		one = &l
		theta := l.Base
		for _, s := range l.Scaling.Used {
			if s.Name == "rope_theta" && s.From == rope.Given {
				theta = s.Value.Numbers()[0]
			}
		}
		if !slices.Contains(bases, theta) {
			bases = append(bases, theta)
		}
	}
	if len(bases) == 0 {
		return 0, nil, ""
	}
	if len(bases) > 1 {
		slices.Sort(bases)
		return 0, nil, fmt.Sprintf("the scaling %v starts from several rope_theta (%s), but it has one for all layers, so its rotation is unchanged", one.Scaling, numbersText(bases))
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

// dictionary writes a form under a key of rope_parameters. Keys that belong to no scaling stay.
func (t *Text) dictionary(key string, f form) error {
	d, err := sjson.SetBytes([]byte("{}"), "rope_type", f.name)
	for _, e := range f.keys {
		if err == nil {
			var value []byte
			if value, err = json.Marshal(e.value); err == nil {
				d, err = sjson.SetRawBytes(d, e.key, value)
			}
		}
	}
	if err == nil && f.base != 0 {
		d, err = sjson.SetBytes(d, "rope_theta", near(f.base, t.number(key+".rope_theta")))
	}
	old := keys{"": t.Get(key)}.object("")
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if err == nil && !scales(name) && !(name == partial && ownShare(f.name)) {
			d, err = sjson.SetRawBytes(d, name, old[name])
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return t.replace(key, d)
}

// older writes a form as transformers before version 5 reads it.
func (t *Text) older(under string, f form, scaling *Scaling) error {
	key := under + "rope_theta"
	for _, name := range []string{"global_rope_theta", "rotary_emb_base"} {
		if !t.has(key) && t.has(under+name) {
			key = under + name
		}
	}
	if f.name == plain || f.name == lists || scaling.gives("rope_theta") || t.has(key) {
		if err := t.setBase(key, f.base); err != nil {
			return err
		}
	}
	switch {
	case f.name != plain:
		f.base = 0
		return t.dictionary(under+"rope_scaling", f)
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
	if math.Abs(measured-given) <= sixteenBits*math.Abs(given) {
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
		case l.Scaling != nil && !after.computed(l, c.Context(i)):
			return fmt.Sprintf("it would not describe layer %d as scaled by %v, so it does not mention the scaling", i, l.Scaling)
		}
	}
	return ""
}

// same reports whether two rotations turn by the same frequencies.
func (r Rotation) same(other Rotation) bool {
	return r.Theta == other.Theta && reflect.DeepEqual(r.Scaling, other.Scaling)
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
