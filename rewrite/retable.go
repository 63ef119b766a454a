package rewrite

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// retabler finds the constants in which a model keeps its rotation, by their
// values: frequencies, or tables of cosines and sines.
type retabler struct {
	graph     *graph
	model     *onnx.Model
	length    int64 // tokens that tables must reach
	constants map[string]rotary
	gains     map[*onnx.Node]float64 // Cos or Sin → what its output is to be multiplied by
	inside    map[*onnx.Node]bool    // nodes of the rotations that are changed
	ends      map[string]bool        // rotated queries and keys
}

// rotary is one constant and what it becomes.
type rotary struct {
	kind   rotaryKind
	tensor *onnx.Tensor
	pairs  []int // which pair each element (of a row) belongs to
	have   rope.Encoding
	want   rope.Encoding
}

type rotaryKind uint8

const (
	frequencyList rotaryKind = iota
	cosTable
	sinTable
)

// find notes the constants and nodes of one site's rotation.
func (t *retabler) find(s retabled, want rope.Encoding) error {
	g, cuts := t.graph, s.site.cuts()
	found := 0
	var err error
	t.ends[s.site.query.operand], t.ends[s.site.key.stored()] = true, true
	gain := want.EffectiveGain() / s.lifted.attention.Encoding.EffectiveGain()
	g.upstream([]string{s.site.query.operand, s.site.key.stored()}, func(v string, n *onnx.Node) []string {
		if slices.Contains(cuts, v) {
			return nil
		}
		if c := g.constants[v]; c != nil {
			if r, ok := classifyTable(c, s.lifted.attention.Encoding); ok {
				found++
				r.have, r.want = s.lifted.attention.Encoding, want
				if other, taken := t.constants[v]; taken && !reflect.DeepEqual(other.want, want) {
					err = fmt.Errorf("layers that are to differ share the constant %q; --target ops gives each its own", v)
				}
				t.constants[v] = r
			}
			return nil
		}
		if n == nil {
			return nil
		}
		t.inside[n] = true
		if standard(n, "Cos", "Sin") {
			t.gains[n] = gain
		}
		return reads(n)
	})
	if err == nil && found == 0 {
		err = errors.New("no constant of the graph holds the rotation's frequencies or tables, so they cannot be changed in place; leave --target onnx out")
	}
	return err
}

// classifyTable says what a constant is to a rotation.
func classifyTable(c *onnx.Tensor, e rope.Encoding) (rotary, bool) {
	pairs := len(e.Frequencies)
	if pairs == 0 || !isFloat(c.Type) {
		return rotary{}, false
	}
	n := int(c.Len())
	if n == pairs || n == 2*pairs {
		values, err := c.Float64s()
		if err != nil {
			return rotary{}, false
		}
		for _, of := range pairings(n, pairs) {
			if fits(values, func(i int) float64 { return e.Frequencies[of(i)] }, 1e-6, 0) {
				return rotary{kind: frequencyList, tensor: c, pairs: indices(n, of)}, true
			}
		}
	}
	if len(c.Dims) != 2 || c.Dims[0] < 2 || c.Dims[1] != int64(pairs) && c.Dims[1] != int64(2*pairs) {
		return rotary{}, false
	}
	values, err := c.Float64s()
	if err != nil {
		return rotary{}, false
	}
	width := int(c.Dims[1])
	for kind, turn := range map[rotaryKind]func(float64) float64{cosTable: math.Cos, sinTable: math.Sin} {
		for _, of := range pairings(width, pairs) {
			expect := func(i int) float64 {
				return e.EffectiveGain() * turn(float64(i/width)*e.Frequencies[of(i%width)])
			}
			// Angles are rounded to the exporter's type, so that only near rows are exact.
			if fits(values[:min(len(values), 16*width)], expect, 0, 2e-2*e.EffectiveGain()) {
				return rotary{kind: kind, tensor: c, pairs: indices(width, of)}, true
			}
		}
	}
	return rotary{}, false
}

// pairings are the ways in which n numbers belong to pairs: once each, or twice
// with the second ones behind all first ones or beside them.
func pairings(n, pairs int) []func(int) int {
	if n == pairs {
		return []func(int) int{func(i int) int { return i }}
	}
	return []func(int) int{func(i int) int { return i % pairs }, func(i int) int { return i / 2 }}
}

func indices(n int, of func(int) int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = of(i)
	}
	return list
}

func fits(values []float64, want func(int) float64, relative, absolute float64) bool {
	for i, v := range values {
		w := want(i)
		if !(math.Abs(v-w) <= relative*math.Abs(w)+absolute) {
			return false
		}
	}
	return true
}

// check refuses constants that reach anything but the rotations that change.
func (t *retabler) check() error {
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(t.constants)) {
		if t.constants[name].tensor.Type != onnx.Float {
			return fmt.Errorf("the rotation's constant %q is not float32, which --target onnx needs", name)
		}
		changed = append(changed, name)
	}
	seen := map[string]bool{}
	for len(changed) > 0 {
		v := changed[len(changed)-1]
		changed = changed[:len(changed)-1]
		if seen[v] || t.ends[v] {
			continue
		}
		seen[v] = true
		if t.graph.outputs[v] {
			return fmt.Errorf("the graph's output %q depends on the rotation's constants", v)
		}
		for _, n := range t.graph.consumers[v] {
			if !t.inside[n] {
				return fmt.Errorf("the rotation's constants reach node %s too, which is not to change; --target ops changes what is asked for and nothing else", label(t.graph.asWritten(n)))
			}
			changed = append(changed, n.Outputs...)
		}
	}
	return nil
}

// write puts the constants for a rotation into the model.
func (t *retabler) write(encoding func(rotary) rope.Encoding) {
	g := t.model.Graph
	for _, name := range slices.Sorted(maps.Keys(t.constants)) {
		r := t.constants[name]
		g.RemoveNodes(func(n *onnx.Node) bool { return standard(n, "Constant") && slices.Contains(n.Outputs, name) })
		g.RemoveInitializers(func(c *onnx.Tensor) bool { return c.Name == name })
		g.ValueInfo = slices.DeleteFunc(slices.Clone(g.ValueInfo), func(v *onnx.ValueInfo) bool { return v.Name == name })
		g.AddInitializer(r.made(name, encoding(r), t.length))
	}
}

// addGains multiplies what Cos and Sin give where the gain changes.
func (t *retabler) addGains() error {
	g := t.model.Graph
	for _, n := range slices.Clone(g.Nodes) {
		gain, ok := t.gains[n]
		if !ok || gain == 1 {
			continue
		}
		if kind := t.graph.element(n.Outputs[0]); kind != onnx.Float {
			return fmt.Errorf("node %s computes in another type than float32, which --target onnx needs", label(n))
		}
		out := n.Outputs[0]
		n.Outputs[0] = out + "/rope_rewrite/ungained"
		factor := out + "/rope_rewrite/gain"
		g.AddInitializer(float32Tensor(factor, []int64{}, float32(gain)))
		mul := onnx.NewNode("Mul", []string{n.Outputs[0], factor}, []string{out})
		mul.Name = out + "/rope_rewrite"
		g.InsertNode(n, mul) // order puts it behind
	}
	return nil
}

// made returns the constant for a rotation.
func (r rotary) made(name string, e rope.Encoding, length int64) *onnx.Tensor {
	if r.kind == frequencyList {
		values := make([]float32, len(r.pairs))
		for i, pair := range r.pairs {
			values[i] = float32(e.Frequencies[pair])
		}
		return float32Tensor(name, r.tensor.Dims, values...)
	}
	turn := math.Cos
	if r.kind == sinTable {
		turn = math.Sin
	}
	rows := max(r.tensor.Dims[0], length)
	values := make([]float32, 0, int(rows)*len(r.pairs))
	for p := range rows {
		for _, pair := range r.pairs {
			angle := float32(p) * float32(e.Frequencies[pair]) // rounded as exporters round it
			values = append(values, float32(e.EffectiveGain()*turn(float64(angle))))
		}
	}
	return float32Tensor(name, []int64{rows, int64(len(r.pairs))}, values...)
}
