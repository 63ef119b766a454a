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

// find returns the candidates of the graph in topological order. A softmax
// that is no attention (a router, a sampler) is none.
func (g *graph) find() []candidate {
	var list []candidate
	for _, n := range g.nodes {
		if fusedAttention(n) {
			list = append(list, candidate{node: n, refusal: g.unreadable(n)})
			continue
		}
		if !standard(n, "Softmax") || len(n.Inputs) == 0 || !g.isData(n.Inputs[0]) {
			continue
		}
		if c, refusal := g.core(n); c != nil || refusal != nil {
			list = append(list, candidate{g.asWritten(n), c, refusal})
		}
	}
	return list
}

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

func (g *graph) core(softmax *onnx.Node) (*core, *Refusal) {
	products, other := g.scoreSources(softmax.Inputs[0])
	if len(products) == 0 {
		return nil, nil
	}
	for _, p := range products {
		if err := g.unread[p]; err != nil {
			return nil, refuse(p, "this %s, which makes the scores of %s, cannot be read: %v", p.OpType, label(softmax), err)
		}
		if standard(p, "Einsum") {
			return nil, refuse(p, "this Einsum, which makes the scores of %s, cannot be read: its equation is %s; one that sums over one dimension, as bhid,bhjd->bhij, was expected",
				label(softmax), p.Text("equation", ""))
		}
	}
	if len(products) > 1 {
		return nil, refuse(softmax, "its scores come from %d products of hidden states (%s, %s), one was expected",
			len(products), label(products[0]), label(products[1]))
	}
	if other != "" {
		return nil, refuse(softmax, "its scores also depend on %q, a hidden state beside the product of query and key", other)
	}
	mixes, refusal := g.probabilityUses(softmax)
	if refusal != nil {
		return nil, refusal
	}
	if len(mixes) != 1 {
		return nil, refuse(softmax, "its probabilities are used by %d products with hidden states, one was expected", len(mixes))
	}
	return &core{softmax: softmax, product: products[0], mix: mixes[0]}, nil
}

// scoreSources walks back from the softmax's input to the products of two
// hidden states; other is a hidden state that comes in beside them.
func (g *graph) scoreSources(value string) (products []*onnx.Node, other string) {
	g.upstream([]string{value}, func(v string, n *onnx.Node) []string {
		switch {
		case !g.isData(v):
		case n == nil || g.weightProduct(n) || standard(n, "DynamicQuantizeLinear"): // the scale of a quantised product
			other = v
		case product(n) && g.isData(n.Inputs[0]) && g.isData(n.Inputs[1]):
			if !slices.Contains(products, n) {
				products = append(products, n)
			}
		default:
			return reads(n)
		}
		return nil
	})
	return products, other
}

// product reports whether n multiplies matrices; a FusedMatMul or Einsum is seen
// only where it could not be read as a MatMul.
func product(n *onnx.Node) bool {
	return standard(n, "MatMul") || standard(n, "Einsum") && len(n.Inputs) == 2 || n.Domain == "com.microsoft" && n.OpType == "FusedMatMul"
}

// probabilityUses walks forward from the softmax to the products of its
// probabilities with hidden states.
func (g *graph) probabilityUses(softmax *onnx.Node) (mixes []*onnx.Node, _ *Refusal) {
	seen := map[*onnx.Node]bool{}
	stack := slices.Clone(softmax.Outputs)
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, n := range g.consumers[v] {
			if seen[n] || standard(n, "Shape", "Size") {
				continue
			}
			seen[n] = true
			switch {
			case standard(n, "MatMul"):
				if n.Inputs[0] != v {
					return nil, refuse(softmax, "its probabilities are the second operand of %s, the first was expected", label(n))
				}
				mixes = append(mixes, n)
			case g.weightProduct(n):
				return nil, refuse(softmax, "its probabilities reach a product with weights (%s)", label(n))
			default:
				stack = append(stack, n.Outputs...)
			}
		}
	}
	return mixes, nil
}
