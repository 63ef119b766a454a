package plainonnx

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// rotaryConstants finds the constants in which a model keeps its rotation, by their
// values: frequencies, or tables of cosines and sines.
type rotaryConstants struct {
	model     *onnx.Model
	constants map[string]rotary
	gains     map[*onnx.Node]gained // Cos or Sin → what its output is to be multiplied by
	inside    map[*onnx.Node]bool   // the model's nodes of the rotations that are changed
	uses      map[*onnx.Node]bool   // those that use what is rotated
	ends      map[string]bool       // rotated queries and keys
}

func newRetabler(m *onnx.Model) *rotaryConstants {
	return &rotaryConstants{model: m, constants: map[string]rotary{}, gains: map[*onnx.Node]gained{},
		inside: map[*onnx.Node]bool{}, uses: map[*onnx.Node]bool{}, ends: map[string]bool{}}
}

// rotary is one constant and what it becomes.
type rotary struct {
	kind   rotaryKind
	tensor *onnx.Tensor
	holder *onnx.Graph // that the constant stands in
	pairs  []int       // which pair each element (of a row) belongs to
	rows   int64       // of a table: how many it is to have
	have   rope.Encoding
	want   rope.Encoding
	site   Site     // the first that reads it
	moved  []string // a frequency list in 16 bits: what it is called on the way to where it is made float32
}

// gained is a Cos or Sin with its factor.
type gained struct {
	holder *onnx.Graph
	factor float64
	kind   onnx.DataType
}

type rotaryKind uint8

const (
	frequencyList rotaryKind = iota
	cosTable
	sinTable
)

// find notes the constants and nodes of one site's rotation.
func (t *rotaryConstants) find(s Site, want rope.Encoding) error {
	g, cuts := s.Scope.View, s.Site.States()
	found := 0
	var err error
	t.ends[s.Site.Query.Operand], t.ends[s.Site.Key.Rotated()] = true, true
	t.uses[g.AsWritten(s.Site.ScoresMatMul)] = true
	gain := want.EffectiveGain() / s.Measured.Attention.Encoding.EffectiveGain()
	g.Upstream([]string{s.Site.Query.Operand, s.Site.Key.Rotated()}, func(v string, n *onnx.Node) []string {
		if slices.Contains(cuts, v) {
			return nil
		}
		if c := g.Constants[v]; c != nil {
			if r, senses, ok := classifySenses(c, s.Measured.Attention.Encoding); ok {
				found++
				r.have, r.want, r.site = s.Measured.Attention.Encoding.WithSenses(senses), want.WithSenses(senses), s
				r.holder = s.Scope.Holder(func(g *onnx.Graph) bool { return g.Initializer(v) != nil || makes(g, v) })
				other, taken := t.constants[v]
				switch {
				case taken && !reflect.DeepEqual(other.want, r.want):
					err = fmt.Errorf("layers that are to differ share the constant %q; --target ops gives each its own, and SPEC@all makes all alike", v)
				case r.holder == nil:
					err = fmt.Errorf("the constant %q of its rotation is no constant of the model's", v)
				case want.Reach.Trained > 0 && (r.kind != frequencyList || s.Scope.Where != ""):
					err = errors.New("length=run without the op is for models that compute their cosines; leave --target onnx out, or length=run")
				}
				if err == nil && r.kind != frequencyList {
					r.rows, err = s.rows(c)
				}
				if taken {
					other.rows = max(other.rows, r.rows)
					r = other
				}
				t.constants[v] = r
			}
			return nil
		}
		if n == nil {
			return nil
		}
		t.inside[g.AsWritten(n)] = true
		if ir.Standard(n, "Cos", "Sin") {
			t.gains[n] = gained{s.Scope.Holder(func(g *onnx.Graph) bool { return slices.Contains(g.Nodes, n) }), gain, g.Element(n.Outputs[0])}
		}
		return ir.Reads(n)
	})
	if err == nil && found == 0 {
		err = errors.New("no constant of the graph holds the rotation's frequencies or tables, so they cannot be changed in place; leave --target onnx out")
	}
	return err
}

// makes reports whether a Constant of the graph makes a value.
func makes(g *onnx.Graph, value string) bool {
	return slices.ContainsFunc(g.Nodes, func(n *onnx.Node) bool { return ir.Standard(n, "Constant") && slices.Contains(n.Outputs, value) })
}

// classifySenses says what a constant is to a rotation, and by which senses the
// graph turns otherwise than the constant says: pairs that turn the other way
// mostly do so by where a sign stands in the graph.
func classifySenses(c *onnx.Tensor, e rope.Encoding) (r rotary, senses []float64, ok bool) {
	same, all := make([]float64, len(e.Frequencies)), make([]float64, len(e.Frequencies))
	for i := range same {
		same[i], all[i] = 1, -1
	}
	for _, senses := range [][]float64{same, all, e.Senses()} {
		if r, ok := classifyTable(c, e.WithSenses(senses)); ok {
			return r, senses, true
		}
	}
	return rotary{}, nil, false
}

// classifyTable says what a constant is to a rotation.
func classifyTable(c *onnx.Tensor, e rope.Encoding) (rotary, bool) {
	pairs := len(e.Frequencies)
	if pairs == 0 || !ir.IsFloat(c.Type) {
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

// tables reports whether there are constants that may become longer.
func (t *rotaryConstants) tables() bool {
	for _, r := range t.constants {
		if r.kind != frequencyList {
			return true
		}
	}
	return false
}

// check refuses constants that reach anything but the rotations that change, and
// those that would be rounded to 16 bits.
func (t *rotaryConstants) check() error {
	readers := map[string][]*onnx.Node{}
	for n := range t.model.Graph.AllNodes() {
		for _, v := range n.Inputs {
			readers[v] = append(readers[v], n)
		}
	}
	given := map[string]bool{}
	for g := range t.model.Graph.AllGraphs() {
		for _, o := range g.Outputs {
			given[o.Name] = true
		}
	}
	changed := slices.Sorted(maps.Keys(t.constants))
	for _, name := range changed {
		r := t.constants[name]
		if !ir.Short(r.tensor.Type) || r.kind != frequencyList {
			continue
		}
		if r.moved = untilFloat(name, readers); r.moved == nil {
			return fmt.Errorf("the model computes with its frequencies %q in %v, which would round the new ones; leave --target onnx out", name, r.tensor.Type)
		}
		t.constants[name] = r
	}
	seen := map[string]bool{}
	for len(changed) > 0 {
		v := changed[len(changed)-1]
		changed = changed[:len(changed)-1]
		if seen[v] || t.ends[v] {
			continue
		}
		seen[v] = true
		if given[v] {
			return fmt.Errorf("the graph's output %q depends on the rotation's constants", v)
		}
		for _, n := range readers[v] {
			switch {
			case t.uses[n]:
			case ir.Standard(n, "Shape", "Size") && !t.tables(): // a list of frequencies keeps its size
			case !t.inside[n]:
				return fmt.Errorf("the rotation's constants reach node %s too, which is not to change; --target ops changes what is asked for and nothing else", ir.Label(n))
			default:
				changed = append(changed, n.Outputs...)
			}
		}
	}
	return nil
}

// untilFloat follows a value through nodes that only move its elements to those
// that make it float32, and returns all that it is called on the way; nil where
// something else reads it.
func untilFloat(value string, readers map[string][]*onnx.Node) []string {
	names := []string{value}
	for i := 0; i < len(names); i++ {
		for _, n := range readers[names[i]] {
			switch {
			case ir.Standard(n, "Cast") && onnx.DataType(n.Int("to", 0)) == onnx.Float:
			case ir.Standard(n, "Expand", "Reshape", "Unsqueeze", "Squeeze", "Transpose", "Identity") && n.Inputs[0] == names[i]:
				names = append(names, n.Outputs...)
			default:
				return nil
			}
		}
	}
	return names
}

// write puts the constants for a rotation into the model.
func (t *rotaryConstants) write(encoding func(rotary) rope.Encoding) {
	for _, name := range slices.Sorted(maps.Keys(t.constants)) {
		r := t.constants[name]
		r.remove(name, t.model)
		r.holder.AddInitializer(r.made(name, encoding(r)))
	}
}

// remove takes the constant out, and what is declared of values that may become
// another type.
func (r rotary) remove(name string, m *onnx.Model) {
	r.holder.RemoveNodes(func(n *onnx.Node) bool { return ir.Standard(n, "Constant") && slices.Contains(n.Outputs, name) })
	r.holder.RemoveInitializers(func(c *onnx.Tensor) bool { return c.Name == name })
	for g := range m.Graph.AllGraphs() {
		undeclared := func(v *onnx.ValueInfo) bool { return v.Name == name || slices.Contains(r.moved, v.Name) }
		if slices.ContainsFunc(g.ValueInfo, undeclared) {
			g.ValueInfo = slices.DeleteFunc(slices.Clone(g.ValueInfo), undeclared)
		}
	}
}

// addGains multiplies what Cos and Sin give where the gain changes.
func (t *rotaryConstants) addGains() error {
	nodes := slices.Collect(maps.Keys(t.gains))
	slices.SortFunc(nodes, func(a, b *onnx.Node) int { return strings.Compare(a.Outputs[0], b.Outputs[0]) }) // the same file each time
	for _, n := range nodes {
		by := t.gains[n]
		if by.factor == 1 {
			continue
		}
		if by.holder == nil {
			return fmt.Errorf("the gain cannot stand inside %s; leave --target onnx out", ir.Label(n))
		}
		out := n.Outputs[0]
		n.Outputs[0] = out + "/rope_rewrite/ungained"
		factor := out + "/rope_rewrite/gain"
		by.holder.AddInitializer(ir.FloatTensor(factor, by.kind, []int64{}, by.factor))
		mul := onnx.NewNode("Mul", []string{n.Outputs[0], factor}, []string{out})
		mul.Name = out + "/rope_rewrite"
		by.holder.InsertNode(n, mul) // order puts it behind
	}
	return nil
}

// made returns the constant for a rotation.
func (r rotary) made(name string, e rope.Encoding) *onnx.Tensor {
	if r.kind == frequencyList {
		return r.list(name, e.Frequencies)
	}
	turn := math.Cos
	if r.kind == sinTable {
		turn = math.Sin
	}
	values := make([]float64, 0, int(r.rows)*len(r.pairs))
	for p := range r.rows {
		for _, pair := range r.pairs {
			angle := float32(p) * float32(e.Frequencies[pair]) // rounded as exporters round it
			values = append(values, e.EffectiveGain()*turn(float64(angle)))
		}
	}
	return ir.FloatTensor(name, r.tensor.Type, []int64{r.rows, int64(len(r.pairs))}, values...)
}

// list returns the frequencies of pairs in the constant's form; what was in 16
// bits becomes float32.
func (r rotary) list(name string, frequencies []float64) *onnx.Tensor {
	values := make([]float64, len(r.pairs))
	for i, pair := range r.pairs {
		values[i] = frequencies[pair]
	}
	kind := r.tensor.Type
	if ir.Short(kind) {
		kind = onnx.Float
	}
	return ir.FloatTensor(name, kind, r.tensor.Dims, values...)
}
