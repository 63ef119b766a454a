package decoder

import (
	"encoding/binary"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/float16"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// exact are the standard ops whose float outputs are numbers that they were given, and those
// whose output is of another type than their first input.
var exact = []string{
	"Cast", "CastLike", "Compress", "Concat", "Constant", "ConstantOfShape", "DepthToSpace", "DequantizeLinear",
	"DynamicQuantizeLinear", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "If", "Loop",
	"Max", "Min", "Neg", "OneHot", "Pad", "QuantizeLinear", "Range", "Relu", "Reshape", "ScatterElements", "ScatterND", "Sequence",
	"Slice", "Split", "Squeeze", "TensorScatter", "Tile", "TopK", "Transpose", "Trilu", "Unsqueeze", "Where",
}

// roundAgain multiplies every float32 number that a node computes by 1 or by a float32 number next to
// it, drawn at random (Monte Carlo arithmetic). Whole numbers stay: they are counts, such as how many
// keys a token sees, and have no rounding in any order. Nodes inside functions are unchanged.
func roundAgain(m *onnx.Model, seed int) {
	r := &rounder{names: onnx.Names{}, rng: rand.New(rand.NewPCG(31, uint64(seed))), empty: m.Opset("") >= emptyReshape}
	r.names.Note(m.Graph)
	// ONNX Runtime has no kernels of the newest random ops, so factors are read from a table.
	r.factors, r.count, r.one = r.names.Fresh("factors"), r.names.Fresh("count"), r.names.Fresh("one")
	r.graph(m.Graph, map[string]onnx.DataType{})
	var table []byte
	for range factors {
		f := []float32{math.Nextafter32(1, 0), 1, math.Nextafter32(1, 2)}[r.rng.IntN(3)]
		table = binary.LittleEndian.AppendUint32(table, math.Float32bits(f))
	}
	m.Graph.AddInitializer(onnx.NewTensor(r.factors, onnx.Float, []int64{factors}, table))
	m.Graph.AddInitializer(integer(r.count, factors))
	m.Graph.AddInitializer(integer(r.one, 1))
}

// factors is the length of the table, a prime, so that rows of a tensor begin at different places.
const factors = 8191

// emptyReshape is the first version of the standard operators whose Reshape makes empty tensors.
const emptyReshape = 14

func integer(name string, v int64) *onnx.Tensor {
	return onnx.NewTensor(name, onnx.Int64, nil, binary.LittleEndian.AppendUint64(nil, uint64(v)))
}

type rounder struct {
	names               onnx.Names
	rng                 *rand.Rand
	factors, count, one string
	empty               bool
}

// graph rounds in a graph; types are those of the values around it.
func (r *rounder) graph(g *onnx.Graph, types map[string]onnx.DataType) {
	types = maps.Clone(types)
	for _, v := range g.Inputs {
		types[v.Name] = v.Type
	}
	for _, t := range g.Initializers {
		types[t.Name] = t.Type
	}
	var nodes []*onnx.Node
	for _, n := range g.Nodes {
		for sub := range n.Subgraphs() {
			r.graph(sub, types)
		}
		for i, o := range n.Outputs {
			types[o] = float16.OutputType(n, i, types)
		}
		nodes = append(nodes, n)
		standard := n.Domain == "" || n.Domain == "ai.onnx"
		if len(n.Outputs) == 0 || types[n.Outputs[0]] != onnx.Float || standard && slices.Contains(exact, n.OpType) {
			continue
		}
		given := n.Outputs[0]
		n.Outputs[0] = r.names.Fresh("computed")
		nodes = append(nodes, r.round(n.Outputs[0], given)...)
	}
	g.Nodes = nodes
}

// round multiplies each number of a value that is not whole by the factor of its place, counted from
// a place of the table that is drawn.
func (r *rounder) round(computed, given string) (nodes []*onnx.Node) {
	op := func(opType string, attrs []*onnx.Attribute, inputs ...string) string {
		out := r.names.Fresh("rounding")
		nodes = append(nodes, onnx.NewNode(opType, inputs, []string{out}, attrs...))
		return out
	}
	from := op("Constant", []*onnx.Attribute{onnx.TensorAttr("value", integer("", r.rng.Int64N(factors)))})
	places := op("Mod", nil, op("Range", nil, from, op("Add", nil, op("Size", nil, computed), from), r.one), r.count)
	var empty []*onnx.Attribute
	if r.empty {
		empty = append(empty, onnx.IntAttr("allowzero", 1))
	}
	factor := op("Reshape", empty, op("Gather", nil, r.factors, places), op("Shape", nil, computed))
	rounded := op("Mul", nil, computed, factor)
	whole := op("Equal", nil, computed, op("Floor", nil, computed))
	return append(nodes, onnx.NewNode("Where", []string{whole, computed, rounded}, []string{given}))
}
