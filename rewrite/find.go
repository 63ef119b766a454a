package rewrite

import (
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// core is the heart of an attention: softmax(f(q·kᵀ))·v.
type core struct {
	softmax *onnx.Node
	product *onnx.Node // MatMul of query and transposed key
	mix     *onnx.Node // MatMul of probabilities and value
}

// candidate is what looks like an attention: a core, or why there is no clear one.
type candidate struct {
	node    *onnx.Node // the softmax or the fused op
	core    *core
	refusal *Refusal
}

// finder looks for attentions in one graph.
type finder struct {
	*graph
	sources  map[string]sources  // what each value comes from, once a softmax was asked for it
	readings map[string]readings // where each value goes, likewise
}

// find returns the candidates of a graph in topological order. A softmax
// that is no attention (a router, a sampler) is none.
func find(g *graph) []candidate {
	f := &finder{graph: g}
	var list []candidate
	softmaxes := map[*onnx.Node]int{} // of a product
	for _, n := range g.nodes {
		if fusedAttention(n) {
			list = append(list, candidate{node: n, refusal: g.unreadable(n)})
			continue
		}
		if !standard(n, "Softmax") || len(n.Inputs) == 0 || !g.isData(n.Inputs[0]) {
			continue
		}
		c, refusal := f.core(n)
		if c != nil {
			if softmaxes[c.product]++; softmaxes[c.product] > mostSoftmaxes {
				c, refusal = nil, refuse(n, "it is one of more than %d softmaxes of the scores that %s makes, one was expected", mostSoftmaxes, label(c.product))
			}
		}
		if c != nil || refusal != nil {
			list = append(list, candidate{g.asWritten(n), c, refusal})
		}
	}
	return list
}

// mostSoftmaxes bounds how many softmaxes of one product are followed up: each
// may have all others between itself and the product with the values.
const mostSoftmaxes = 8

// unreadable says why a fused attention was not expanded.
func (g *graph) unreadable(n *onnx.Node) *Refusal {
	if err := g.unread[n]; err != nil {
		return refuse(n, "this %s cannot be read: %v", n.OpType, err)
	}
	switch {
	case n.OpType == "QAttention" && n.Int("do_rotary", 0) != 0:
		return refuse(n, "this %s turns query and key inside itself (do_rotary), which ONNX Runtime leaves out on the CPU without a word, so that nothing can be proven of it; have the rotation exported or fused as RotaryEmbedding before MultiHeadAttention", n.OpType)
	case weighted(n) && n.Int("do_rotary", 0) != 0:
		return refuse(n, "this %s turns query and key inside itself (do_rotary), which ONNX Runtime does not run on the CPU, so that nothing can be proven of it; have the rotation exported or fused as RotaryEmbedding before MultiHeadAttention", n.OpType)
	case n.OpType == "SparseAttention":
		return refuse(n, "ONNX Runtime runs %s only where past and present keys are one buffer, which a proof does not have; have it exported with GroupQueryAttention", n.OpType)
	case n.OpType == "DecoderMaskedMultiHeadAttention":
		return refuse(n, "%s takes one token in a call and no more; a model that takes several was expected: it is made of one for beam search, have that one rewritten", n.OpType)
	case strings.HasPrefix(n.OpType, "Packed"), slices.Contains([]string{"DecoderMaskedSelfAttention", "LongformerAttention", "PagedAttention"}, n.OpType):
		return refuse(n, "ONNX Runtime does not run %s on the CPU, so that nothing can be proven of it", n.OpType)
	case weighted(n):
		return refuse(n, "this %s multiplies by the weights of query, key and value itself and turns neither query nor key", n.OpType)
	}
	return refuse(n, "the fused op %s is not lifted by this version", n.OpType)
}

// fusedAttention reports whether n is a whole attention in one op.
func fusedAttention(n *onnx.Node) bool {
	if standard(n, "Attention") {
		return true
	}
	return n.Domain == "com.microsoft" && slices.Contains([]string{"Attention", "QAttention", "MultiHeadAttention", "GroupQueryAttention",
		"PackedAttention", "PackedMultiHeadAttention", "DecoderMaskedMultiHeadAttention", "DecoderMaskedSelfAttention",
		"SparseAttention", "PagedAttention", "LongformerAttention"}, n.OpType)
}

func (f *finder) core(softmax *onnx.Node) (*core, *Refusal) {
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
		if err := f.unread[p]; err != nil {
			return nil, refuse(p, "this %s, which makes the scores of %s, cannot be read: %v", p.OpType, label(softmax), err)
		}
		if standard(p, "Einsum") {
			return nil, refuse(p, "this Einsum, which makes the scores of %s, cannot be read: its equation is %s; one that sums over one dimension, as bhid,bhjd->bhij, was expected",
				label(softmax), p.Text("equation", ""))
		}
	}
	if len(products) > 1 {
		return nil, refuse(softmax, "its scores come from several products of hidden states (%s, %s), one was expected",
			label(products[0]), label(products[1]))
	}
	if other != "" {
		return nil, refuse(softmax, "its scores also depend on %q, a hidden state beside the product of query and key", other)
	}
	to := readings{}
	for _, v := range softmax.Outputs {
		to = to.with(f.readings[v])
	}
	switch {
	case standard(to.wrong, "MatMul"):
		return nil, refuse(softmax, "its probabilities are the second operand of %s, the first was expected", label(to.wrong))
	case to.wrong != nil:
		return nil, refuse(softmax, "its probabilities reach a product with weights (%s)", label(to.wrong))
	case len(to.mixes) == 0:
		return nil, refuse(softmax, "its probabilities are used by no product with hidden states, one was expected")
	case len(to.mixes) > 1:
		return nil, refuse(softmax, "its probabilities are used by several products with hidden states (%s, %s), one was expected", label(to.mixes[0]), label(to.mixes[1]))
	}
	return &core{softmax: softmax, product: products[0], mix: to.mixes[0]}, nil
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
func (f *finder) traceSources() {
	f.sources = map[string]sources{}
	for name := range f.inputs {
		if f.isData(name) {
			f.sources[name] = sources{other: name}
		}
	}
	for _, n := range f.nodes {
		var from sources
		switch {
		case f.weightProduct(n) || standard(n, "DynamicQuantizeLinear"): // the scale of a quantised product
			for _, v := range n.Outputs {
				f.sources[v] = sources{other: v}
			}
			continue
		case product(n) && f.isData(n.Inputs[0]) && f.isData(n.Inputs[1]):
			from.products = []*onnx.Node{n}
		default:
			for v := range uses(n) {
				if f.isData(v) {
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
	return standard(n, "MatMul") || standard(n, "Einsum") && len(n.Inputs) == 2 || n.Domain == "com.microsoft" && n.OpType == "FusedMatMul"
}

// readings is where probabilities go: the products with hidden states, of which
// two are enough to know, and the first node where they should not go.
type readings struct {
	mixes []*onnx.Node
	wrong *onnx.Node
}

// traceReadings notes for each value where it goes.
func (f *finder) traceReadings() {
	f.readings = map[string]readings{}
	for _, n := range slices.Backward(f.nodes) {
		if standard(n, "Shape", "Size") {
			continue
		}
		var to readings
		for _, v := range n.Outputs {
			to = to.with(f.readings[v])
		}
		for v := range uses(n) {
			here := to
			switch mixes := standard(n, "MatMul"); {
			case mixes && n.Inputs[0] == v:
				here = readings{mixes: []*onnx.Node{n}}
			case mixes, f.weightProduct(n):
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
