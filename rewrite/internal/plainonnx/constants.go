package plainonnx

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// rotaryConstants is the constants of a model's rotations that are to change: frequencies,
// or tables of cosines and sines. They are found by their values.
type rotaryConstants struct {
	model         *onnx.Model
	constants     map[string]rotaryConstant
	gains         map[*onnx.Node]gainChange // Cos or Sin → factor on its output
	nodes         map[*onnx.Node]bool       // the nodes of the rotations that change
	scoresMatMuls map[*onnx.Node]bool       // of the sites whose rotation changes
	rotated       map[string]bool           // rotated queries and keys
}

func newRotaryConstants(m *onnx.Model) *rotaryConstants {
	return &rotaryConstants{model: m, constants: map[string]rotaryConstant{}, gains: map[*onnx.Node]gainChange{},
		nodes: map[*onnx.Node]bool{}, scoresMatMuls: map[*onnx.Node]bool{}, rotated: map[string]bool{}}
}

// rotaryConstant is one such constant, and what it is to be.
type rotaryConstant struct {
	kind    constantKind
	tensor  *onnx.Tensor
	holder  *onnx.Graph   // the graph with the constant
	pairs   []int         // for each element (of a row): which pair it belongs to
	rows    int64         // of a table: how many rows it is to have
	have    rope.Encoding // the model's own
	want    rope.Encoding
	site    Layer    // the first site that reads it
	aliases []string // of frequencies in 16 bits: the names of all values on the path to the Cast to float32
}

// gainChange is the factor on the output of a Cos or Sin.
type gainChange struct {
	holder *onnx.Graph
	factor float64
	kind   onnx.DataType
}

// constantKind says what a constant holds.
type constantKind uint8

const (
	frequencyList constantKind = iota
	cosTable
	sinTable
)

// find adds the constants and nodes of one site's rotation.
func (t *rotaryConstants) find(s Layer, want rope.Encoding) error {
	g, boundaries := s.Scope.View, s.Site.States()
	found := 0
	var err error
	t.rotated[s.Site.Query.Operand], t.rotated[s.Site.Key.Rotated()] = true, true
	t.scoresMatMuls[g.AsWritten(s.Site.ScoresMatMul)] = true
	gain := want.EffectiveGain() / s.Measured.Attention.Encoding.EffectiveGain()
	g.Upstream([]string{s.Site.Query.Operand, s.Site.Key.Rotated()}, func(v string, n *onnx.Node) []string {
		if slices.Contains(boundaries, v) {
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
					err = fmt.Errorf("layers that need different values share the constant %q", short.Name(v))
				case r.holder == nil:
					err = fmt.Errorf("%q of its rotation is not a constant of the model", short.Name(v))
				case want.LengthDependent.Trained > 0 && (r.kind != frequencyList || s.Scope.Where != ""):
					err = errors.New("the model has tables of cosines, which do not depend on the length of a call")
				}
				if err == nil && r.kind != frequencyList {
					r.rows, err = s.tableRows(c)
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
		t.nodes[g.AsWritten(n)] = true
		if ir.Standard(n, "Cos", "Sin") {
			t.gains[n] = gainChange{s.Scope.Holder(func(g *onnx.Graph) bool { return slices.Contains(g.Nodes, n) }), gain, g.Element(n.Outputs[0])}
		}
		return ir.Reads(n)
	})
	if err == nil && found == 0 {
		err = errors.New("no constant of the graph holds the rotation's frequencies or tables, so they cannot be changed in place")
	}
	return err
}

// makes reports whether a Constant node of the graph gives a value.
func makes(g *onnx.Graph, value string) bool {
	return slices.ContainsFunc(g.Nodes, func(n *onnx.Node) bool { return ir.Standard(n, "Constant") && slices.Contains(n.Outputs, value) })
}

// tables reports whether there are tables, whose number of rows may change.
func (t *rotaryConstants) tables() bool {
	for _, r := range t.constants {
		if r.kind != frequencyList {
			return true
		}
	}
	return false
}

// check returns an error where the constants or gains of all sites together cannot be changed.
func (t *rotaryConstants) check() error {
	for _, n := range t.gained() {
		if t.gains[n].holder == nil {
			return fmt.Errorf("the gain cannot be put inside %s", ir.Label(n))
		}
	}
	return t.checkReaders()
}

// gained lists the Cos and Sin nodes whose gain changes, in an order that is the same each time.
func (t *rotaryConstants) gained() []*onnx.Node {
	nodes := slices.DeleteFunc(slices.Collect(maps.Keys(t.gains)), func(n *onnx.Node) bool { return t.gains[n].factor == 1 })
	slices.SortFunc(nodes, func(a, b *onnx.Node) int { return strings.Compare(a.Outputs[0], b.Outputs[0]) })
	return nodes
}

// checkReaders returns an error where the constants are also used for something else than
// the rotations that change, or where the model computes with them in 16 bits.
func (t *rotaryConstants) checkReaders() error {
	readers := map[string][]*onnx.Node{}
	for n := range t.model.Graph.AllNodes() {
		for _, v := range n.Inputs {
			readers[v] = append(readers[v], n)
		}
	}
	outputs := map[string]bool{}
	for g := range t.model.Graph.AllGraphs() {
		for _, o := range g.Outputs {
			outputs[o.Name] = true
		}
	}
	changed := slices.Sorted(maps.Keys(t.constants))
	for _, name := range changed {
		r := t.constants[name]
		if !ir.Is16Bit(r.tensor.Type) || r.kind != frequencyList {
			continue
		}
		if r.aliases = aliasesUntilFloat(name, readers); r.aliases == nil {
			return fmt.Errorf("the model uses its frequencies %q in %v, which would round the new ones", short.Name(name), r.tensor.Type)
		}
		t.constants[name] = r
	}
	seen := map[string]bool{}
	for len(changed) > 0 {
		v := changed[len(changed)-1]
		changed = changed[:len(changed)-1]
		if seen[v] || t.rotated[v] {
			continue
		}
		seen[v] = true
		if outputs[v] {
			return fmt.Errorf("the graph's output %q depends on the rotation's constants", short.Name(v))
		}
		for _, n := range readers[v] {
			switch {
			case t.scoresMatMuls[n]:
			case ir.Standard(n, "Shape", "Size") && !t.tables(): // the number of frequencies does not change
			case !t.nodes[n]:
				return fmt.Errorf("the rotation's constants reach node %s too, which must not change", ir.Label(n))
			default:
				changed = append(changed, n.Outputs...)
			}
		}
	}
	return nil
}

// aliasesUntilFloat follows a value through nodes that only rearrange its elements, up to
// Casts to float32, and returns the names of all values on these paths. It returns nil
// where another node reads one of them.
func aliasesUntilFloat(value string, readers map[string][]*onnx.Node) []string {
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

// write replaces all constants by those of the encodings that the argument returns.
func (t *rotaryConstants) write(encoding func(rotaryConstant) rope.Encoding) {
	for _, name := range slices.Sorted(maps.Keys(t.constants)) {
		r := t.constants[name]
		r.remove(name, t.model)
		r.holder.AddInitializer(r.newTensor(name, encoding(r)))
	}
}

// remove removes the constant, and the declared types of values that will be float32.
func (r rotaryConstant) remove(name string, m *onnx.Model) {
	r.holder.RemoveNodes(func(n *onnx.Node) bool { return ir.Standard(n, "Constant") && slices.Contains(n.Outputs, name) })
	r.holder.RemoveInitializers(func(c *onnx.Tensor) bool { return c.Name == name })
	for g := range m.Graph.AllGraphs() {
		undeclared := func(v *onnx.ValueInfo) bool { return v.Name == name || slices.Contains(r.aliases, v.Name) }
		if slices.ContainsFunc(g.ValueInfo, undeclared) {
			g.ValueInfo = slices.DeleteFunc(slices.Clone(g.ValueInfo), undeclared)
		}
	}
}

// addGains multiplies the outputs of Cos and Sin nodes where the gain changes.
func (t *rotaryConstants) addGains() {
	for _, n := range t.gained() {
		by := t.gains[n]
		out := n.Outputs[0]
		n.Outputs[0] = out + "/rope_rewrite/ungained"
		factor := out + "/rope_rewrite/gain"
		by.holder.AddInitializer(ir.FloatTensor(factor, by.kind, []int64{}, by.factor))
		mul := onnx.NewNode("Mul", []string{n.Outputs[0], factor}, []string{out})
		mul.Name = out + "/rope_rewrite"
		by.holder.InsertNode(n, mul) // ir.Order will put it after n
	}
}

// newTensor returns the constant for an encoding.
func (r rotaryConstant) newTensor(name string, e rope.Encoding) *onnx.Tensor {
	if r.kind == frequencyList {
		return r.frequencyTensor(name, e.Frequencies)
	}
	wave := math.Cos
	if r.kind == sinTable {
		wave = math.Sin
	}
	values := make([]float64, 0, int(r.rows)*len(r.pairs))
	for p := range r.rows {
		for _, pair := range r.pairs {
			angle := float64(p) * e.Frequencies[pair]
			if !e.ExactAngles {
				angle = float64(float32(p) * float32(e.Frequencies[pair])) // rounded as exporters round it
			}
			values = append(values, e.EffectiveGain()*wave(angle))
		}
	}
	return ir.FloatTensor(name, r.tensor.Type, []int64{r.rows, int64(len(r.pairs))}, values...)
}

// frequencyTensor returns frequencies, given per pair, in the form of the constant. Those
// that were in 16 bits become float32.
func (r rotaryConstant) frequencyTensor(name string, frequencies []float64) *onnx.Tensor {
	values := make([]float64, len(r.pairs))
	for i, pair := range r.pairs {
		values[i] = frequencies[pair]
	}
	kind := r.tensor.Type
	if ir.Is16Bit(kind) {
		kind = onnx.Float
	}
	return ir.FloatTensor(name, kind, r.tensor.Dims, values...)
}
