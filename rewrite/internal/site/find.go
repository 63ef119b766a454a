package site

import (
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Core is the heart of an attention: softmax(f(q·kᵀ))·v.
type Core struct {
	Softmax      *onnx.Node
	ScoresMatMul *onnx.Node // MatMul of query and transposed key
	ValueMatMul  *onnx.Node // MatMul of probabilities and value
}

// candidate is what looks like an attention: a core, or why there is no clear one.
type candidate struct {
	Node    *onnx.Node // the softmax or the fused op
	Core    *Core
	Refusal *graph.Refusal
}

// Finder looks for attentions in one graph.
type Finder struct {
	*graph.Graph
	sources  map[string]sources  // what each value comes from, once a softmax was asked for it
	readings map[string]readings // where each value goes, likewise
}

// Find returns the candidates of a graph in topological order. A softmax
// that is no attention (a router, a sampler) is none.
func Find(g *graph.Graph) []candidate {
	f := &Finder{Graph: g}
	var list []candidate
	softmaxes := map[*onnx.Node]int{} // of a product
	for _, n := range g.Nodes {
		if fusedAttention(n) {
			list = append(list, candidate{Node: n, Refusal: unreadable(g, n)})
			continue
		}
		if !ir.Standard(n, "Softmax") || len(n.Inputs) == 0 || !g.IsData(n.Inputs[0]) {
			continue
		}
		c, refusal := f.Core(n)
		if c != nil {
			if softmaxes[c.ScoresMatMul]++; softmaxes[c.ScoresMatMul] > mostSoftmaxes {
				c, refusal = nil, graph.Refuse(n, "it is one of more than %d softmaxes of the scores that %s makes, one was expected", mostSoftmaxes, ir.Label(c.ScoresMatMul))
			}
		}
		if c != nil || refusal != nil {
			list = append(list, candidate{g.AsWritten(n), c, refusal})
		}
	}
	return list
}

// mostSoftmaxes bounds how many softmaxes of one product are followed up: each
// may have all others between itself and the product with the values.
const mostSoftmaxes = 8

// unreadable says why a fused attention was not expanded.
func unreadable(g *graph.Graph, n *onnx.Node) *graph.Refusal {
	if err := g.Unread[n]; err != nil {
		return graph.Refuse(n, "this %s cannot be read: %v", n.OpType, err)
	}
	switch {
	case n.OpType == "QAttention" && n.Int("do_rotary", 0) != 0:
		return graph.Refuse(n, "this %s turns query and key inside itself (do_rotary), which ONNX Runtime leaves out on the CPU without a word, so that nothing can be proven of it; have the rotation exported or fused as RotaryEmbedding before MultiHeadAttention", n.OpType)
	case weighted(n) && n.Int("do_rotary", 0) != 0:
		return graph.Refuse(n, "this %s turns query and key inside itself (do_rotary), which ONNX Runtime does not run on the CPU, so that nothing can be proven of it; have the rotation exported or fused as RotaryEmbedding before MultiHeadAttention", n.OpType)
	case n.OpType == "SparseAttention":
		return graph.Refuse(n, "ONNX Runtime runs %s only where past and present keys are one buffer, which a proof does not have; have it exported with GroupQueryAttention", n.OpType)
	case n.OpType == "DecoderMaskedMultiHeadAttention":
		return graph.Refuse(n, "%s takes one token in a call and no more; a model that takes several was expected: it is made of one for beam search, have that one rewritten", n.OpType)
	case strings.HasPrefix(n.OpType, "Packed"), slices.Contains([]string{"DecoderMaskedSelfAttention", "LongformerAttention", "PagedAttention"}, n.OpType):
		return graph.Refuse(n, "ONNX Runtime does not run %s on the CPU, so that nothing can be proven of it", n.OpType)
	case weighted(n):
		return graph.Refuse(n, "this %s multiplies by the weights of query, key and value itself and turns neither query nor key", n.OpType)
	}
	return graph.Refuse(n, "the fused op %s is not lifted by this version", n.OpType)
}

func (f *Finder) Core(softmax *onnx.Node) (*Core, *graph.Refusal) {
	if f.sources == nil {
		f.traceSources()
		f.traceReadings()
	}
	from := f.sources[softmax.Inputs[0]]
	products, other := from.products, from.other
	if len(products) == 0 {
		return nil, nil
	}
	for _, p := range products {
		if err := f.Unread[p]; err != nil {
			return nil, graph.Refuse(p, "this %s, which makes the scores of %s, cannot be read: %v", p.OpType, ir.Label(softmax), err)
		}
		if ir.Standard(p, "Einsum") {
			return nil, graph.Refuse(p, "this Einsum, which makes the scores of %s, cannot be read: its equation is %s; one that sums over one dimension, as bhid,bhjd->bhij, was expected",
				ir.Label(softmax), p.Text("equation", ""))
		}
	}
	if len(products) > 1 {
		return nil, graph.Refuse(softmax, "its scores come from several products of hidden states (%s, %s), one was expected",
			ir.Label(products[0]), ir.Label(products[1]))
	}
	if other != "" {
		return nil, graph.Refuse(softmax, "its scores also depend on %q, a hidden state beside the product of query and key", other)
	}
	to := readings{}
	for _, v := range softmax.Outputs {
		to = to.with(f.readings[v])
	}
	switch {
	case ir.Standard(to.wrong, "MatMul"):
		return nil, graph.Refuse(softmax, "its probabilities are the second operand of %s, the first was expected", ir.Label(to.wrong))
	case to.wrong != nil:
		return nil, graph.Refuse(softmax, "its probabilities reach a product with weights (%s)", ir.Label(to.wrong))
	case len(to.mixes) == 0:
		return nil, graph.Refuse(softmax, "its probabilities are used by no product with hidden states, one was expected")
	case len(to.mixes) > 1:
		return nil, graph.Refuse(softmax, "its probabilities are used by several products with hidden states (%s, %s), one was expected", ir.Label(to.mixes[0]), ir.Label(to.mixes[1]))
	}
	return &Core{Softmax: softmax, ScoresMatMul: products[0], ValueMatMul: to.mixes[0]}, nil
}

// sources is what scores come from: the products of two hidden states, of which
// two are enough to know, and a hidden state that comes in beside them.
type sources struct {
	products []*onnx.Node
	other    string
}

func (s sources) with(more sources) sources {
	if s.other == "" {
		s.other = more.other
	}
	s.products = few(s.products, more.products)
	return s
}

// few adds nodes to a list that is shared with others, until there are two.
func few(list, more []*onnx.Node) []*onnx.Node {
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

// traceSources notes for each hidden state what it comes from, so that a graph of
// many softmaxes is walked through once.
func (f *Finder) traceSources() {
	f.sources = map[string]sources{}
	for name := range f.Inputs {
		if f.IsData(name) {
			f.sources[name] = sources{other: name}
		}
	}
	for _, n := range f.Nodes {
		var from sources
		switch {
		case f.WeightProduct(n) || ir.Standard(n, "DynamicQuantizeLinear"): // the scale of a quantised product
			for _, v := range n.Outputs {
				f.sources[v] = sources{other: v}
			}
			continue
		case product(n) && f.IsData(n.Inputs[0]) && f.IsData(n.Inputs[1]):
			from.products = []*onnx.Node{n}
		default:
			for v := range ir.Uses(n) {
				if f.IsData(v) {
					from = from.with(f.sources[v])
				}
			}
		}
		for _, v := range n.Outputs {
			f.sources[v] = from
		}
	}
}

// product reports whether n multiplies matrices; a FusedMatMul or Einsum is seen
// only where it could not be read as a MatMul.
func product(n *onnx.Node) bool {
	return ir.Standard(n, "MatMul") || ir.Standard(n, "Einsum") && len(n.Inputs) == 2 || n.Domain == "com.microsoft" && n.OpType == "FusedMatMul"
}

// readings is where probabilities go: the products with hidden states, of which
// two are enough to know, and the first node where they should not go.
type readings struct {
	mixes []*onnx.Node
	wrong *onnx.Node
}

// traceReadings notes for each value where it goes.
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
			switch mixes := ir.Standard(n, "MatMul"); {
			case mixes && n.Inputs[0] == v:
				here = readings{mixes: []*onnx.Node{n}}
			case mixes, f.WeightProduct(n):
				here = readings{wrong: n}
			}
			f.readings[v] = f.readings[v].with(here)
		}
	}
}

func (r readings) with(more readings) readings {
	if r.wrong == nil {
		r.wrong = more.wrong
	}
	r.mixes = few(r.mixes, more.mixes)
	return r
}
