package site

import (
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Core holds the three nodes at the heart of an attention, softmax(f(q·kᵀ))·v.
type Core struct {
	Softmax      *onnx.Node
	ScoresMatMul *onnx.Node // MatMul of query and transposed key
	ValueMatMul  *onnx.Node // MatMul of probabilities and value
	Biases       []Bias     // hidden states that are added to the scores; nil for most
}

// Candidate is a node that looks like an attention: with its core, or with the reason
// why no core was found.
type Candidate struct {
	Node    *onnx.Node // the Softmax or the fused op
	Core    *Core
	Refusal *graph.Refusal
}

// Finder finds the cores of attention layers in one graph. It walks through the graph once,
// when Core is called first.
type Finder struct {
	*graph.Graph
	sources  map[string]sources  // by value: what it is computed from
	readings map[string]readings // by value: which products read it
}

// Find returns the candidates of a graph in topological order. A Softmax that is not
// over a product of two hidden states (of a router, of a sampler) is no candidate.
func Find(g *graph.Graph) []Candidate {
	f := &Finder{Graph: g}
	var list []Candidate
	softmaxes := map[*onnx.Node]int{} // how many read the scores of a MatMul
	for _, n := range g.Nodes {
		if fusedAttention(n) {
			list = append(list, Candidate{Node: n, Refusal: unreadable(g, n)})
			continue
		}
		if !ir.Standard(n, "Softmax") || len(n.Inputs) == 0 || !g.IsData(n.Inputs[0]) {
			continue
		}
		c, refusal := f.Core(n)
		if c != nil {
			if softmaxes[c.ScoresMatMul]++; softmaxes[c.ScoresMatMul] > maxSoftmaxes {
				c, refusal = nil, graph.Refuse(n, "this Softmax is one of more than %d softmaxes of the scores that %s makes, expected one", maxSoftmaxes, ir.Label(c.ScoresMatMul))
			}
		}
		if c != nil || refusal != nil {
			list = append(list, Candidate{g.AsWritten(n), c, refusal})
		}
	}
	return list
}

// maxSoftmaxes bounds how many Softmax nodes over the scores of one MatMul are
// delimited. On each one's path to its value MatMul may stand all the others, so the
// work grows with the square of their number.
const maxSoftmaxes = 8

// unreadable says why a fused attention was not expanded into primitive nodes.
func unreadable(g *graph.Graph, n *onnx.Node) *graph.Refusal {
	if err := g.Unread[n]; err != nil {
		return graph.Refuse(n, "this %s cannot be read: %v", n.OpType, err)
	}
	switch {
	case n.OpType == "QAttention" && n.Int("do_rotary", 0) != 0:
		return graph.Refuse(n, "this %s rotates query and key inside itself (do_rotary), which ONNX Runtime silently ignores on the CPU, so it cannot be verified; export or fuse the rotation as RotaryEmbedding before MultiHeadAttention", n.OpType)
	case weighted(n) && n.Int("do_rotary", 0) != 0:
		return graph.Refuse(n, "this %s rotates query and key inside itself (do_rotary), which ONNX Runtime does not run on the CPU, so it cannot be verified; export or fuse the rotation as RotaryEmbedding before MultiHeadAttention", n.OpType)
	case n.OpType == "SparseAttention":
		return graph.Refuse(n, "ONNX Runtime runs %s only if past and present keys are one buffer, so it cannot be verified; export the model with GroupQueryAttention", n.OpType)
	case n.OpType == "DecoderMaskedMultiHeadAttention":
		return graph.Refuse(n, "%s takes only one token per call; expected several; rewrite the model that this one was made from for beam search", n.OpType)
	case strings.HasPrefix(n.OpType, "Packed"), slices.Contains([]string{"DecoderMaskedSelfAttention", "LongformerAttention", "PagedAttention"}, n.OpType):
		return graph.Refuse(n, "ONNX Runtime does not run %s on the CPU, so it cannot be verified", n.OpType)
	case weighted(n):
		return graph.Refuse(n, "this %s multiplies by the weights of query, key and value inside itself, and does not rotate query and key", n.OpType)
	}
	return graph.Refuse(n, "the fused op %s is not supported by this version", n.OpType)
}

// Core returns the core around a Softmax; nil and no refusal where the Softmax is not
// over a product of two hidden states.
func (f *Finder) Core(softmax *onnx.Node) (*Core, *graph.Refusal) {
	if f.sources == nil {
		f.traceSources()
		f.traceReadings()
	}
	source := f.sources[softmax.Inputs[0]]
	scoresMatMuls, other := source.products, source.other
	if len(scoresMatMuls) == 0 {
		return nil, nil
	}
	for _, p := range scoresMatMuls {
		if err := f.Unread[p]; err != nil {
			return nil, graph.Refuse(p, "this %s, which makes the scores of %s, cannot be read: %v", p.OpType, ir.Label(softmax), err)
		}
		if ir.Standard(p, "Einsum") {
			return nil, graph.Refuse(p, "this Einsum, which makes the scores of %s, cannot be read: its equation is %s; expected one that sums over one dimension, as bhid,bhjd->bhij",
				ir.Label(softmax), p.Text("equation", ""))
		}
	}
	if len(scoresMatMuls) > 1 {
		return nil, graph.Refuse(softmax, "its scores come from several products of hidden states (%s, %s), expected one",
			ir.Label(scoresMatMuls[0]), ir.Label(scoresMatMuls[1]))
	}
	var biases []Bias
	if other != "" {
		var refusal *graph.Refusal
		if biases, refusal = f.biases(softmax, scoresMatMuls[0]); refusal != nil {
			return nil, refusal
		}
	}
	reading := readings{}
	for _, v := range softmax.Outputs {
		reading = reading.with(f.readings[v])
	}
	switch {
	case ir.Standard(reading.wrong, "MatMul"):
		return nil, graph.Refuse(softmax, "its probabilities are the second operand of %s, expected the first", ir.Label(reading.wrong))
	case reading.wrong != nil:
		return nil, graph.Refuse(softmax, "its probabilities reach a product with weights (%s)", ir.Label(reading.wrong))
	case len(reading.valueMatMuls) == 0:
		return nil, graph.Refuse(softmax, "its probabilities are used by no product with hidden states, expected one")
	case len(reading.valueMatMuls) > 1:
		return nil, graph.Refuse(softmax, "its probabilities are used by several products with hidden states (%s, %s), expected one", ir.Label(reading.valueMatMuls[0]), ir.Label(reading.valueMatMuls[1]))
	}
	return &Core{Softmax: softmax, ScoresMatMul: scoresMatMuls[0], ValueMatMul: reading.valueMatMuls[0], Biases: biases}, nil
}

// sources says what a value is computed from: up to two products of two hidden states
// (more need not be known), and a hidden state that is in none of these products.
type sources struct {
	products []*onnx.Node
	other    string
}

func (s sources) with(other sources) sources {
	if s.other == "" {
		s.other = other.other
	}
	s.products = atMostTwo(s.products, other.products)
	return s
}

// atMostTwo adds nodes to a list until it has two. The list may be shared by several
// values, so it is never changed in place.
func atMostTwo(list, more []*onnx.Node) []*onnx.Node {
	if len(list) == 0 {
		return more
	}
	for _, n := range more {
		if len(list) < 2 && !slices.Contains(list, n) {
			list = append(slices.Clip(list), n)
		}
	}
	return list
}

// traceSources fills in sources for all hidden states, in one pass over the graph.
func (f *Finder) traceSources() {
	f.sources = map[string]sources{}
	for name := range f.Inputs {
		if f.IsData(name) {
			f.sources[name] = sources{other: name}
		}
	}
	for _, n := range f.Nodes {
		var source sources
		switch {
		case f.WeightProduct(n) || ir.Standard(n, "DynamicQuantizeLinear"): // which also gives the scale of a quantised product
			for _, v := range n.Outputs {
				f.sources[v] = sources{other: v}
			}
			continue
		case isMatMul(n) && f.IsData(n.Inputs[0]) && f.IsData(n.Inputs[1]):
			source.products = []*onnx.Node{n}
		default:
			for v := range ir.Uses(n) {
				if f.IsData(v) {
					source = source.with(f.sources[v])
				}
			}
		}
		for _, v := range n.Outputs {
			f.sources[v] = source
		}
	}
}

// isMatMul reports whether n multiplies matrices. A FusedMatMul or Einsum is left in
// the graph only where it could not be expanded into a MatMul.
func isMatMul(n *onnx.Node) bool {
	return ir.Standard(n, "MatMul") || ir.Standard(n, "Einsum") && len(n.Inputs) == 2 || n.Domain == "com.microsoft" && n.OpType == "FusedMatMul"
}

// readings says which products read a value: up to two as their first operand (more
// need not be known), and the first one where probabilities should not go.
type readings struct {
	valueMatMuls []*onnx.Node
	wrong        *onnx.Node
}

// traceReadings fills in readings for all values, in one pass from the outputs back.
func (f *Finder) traceReadings() {
	f.readings = map[string]readings{}
	for _, n := range slices.Backward(f.Nodes) {
		if ir.Standard(n, "Shape", "Size") {
			continue
		}
		var to readings
		for _, v := range n.Outputs {
			to = to.with(f.readings[v])
		}
		for v := range ir.Uses(n) {
			here := to
			switch multiplies := ir.Standard(n, "MatMul"); {
			case multiplies && n.Inputs[0] == v:
				here = readings{valueMatMuls: []*onnx.Node{n}}
			case multiplies, f.WeightProduct(n):
				here = readings{wrong: n}
			}
			f.readings[v] = f.readings[v].with(here)
		}
	}
}

func (r readings) with(other readings) readings {
	if r.wrong == nil {
		r.wrong = other.wrong
	}
	r.valueMatMuls = atMostTwo(r.valueMatMuls, other.valueMatMuls)
	return r
}
