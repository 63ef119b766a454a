package site

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Scores may be the product of query and key plus a value that the model computes from
// hidden states, a decay or a gate of each key. It stays the model's own: the site begins
// behind it, as it begins behind query and key, and the op adds what it is given. So
// nothing needs to be known of how it is computed, only that it is added.

// Bias is such a value.
type Bias struct {
	Value      string
	Subtracted bool // and not added
	Hides      bool // what is added may be −∞ or a number so low that it hides keys
}

// biases returns the hidden states that are added to the scores between a product and its
// softmax. It refuses those that reach the scores in another way.
func (f *Finder) biases(softmax, product *onnx.Node) ([]Bias, *graph.Refusal) {
	between := map[*onnx.Node]bool{}
	f.Upstream([]string{softmax.Inputs[0]}, func(v string, n *onnx.Node) []string {
		if n == nil || n == product || !f.IsData(v) || f.WeightProduct(n) {
			return nil
		}
		between[n] = true
		return ir.Reads(n)
	})
	var inOrder []*onnx.Node
	for n := range between {
		inOrder = append(inOrder, n)
	}
	slices.SortFunc(inOrder, func(a, b *onnx.Node) int { return f.Order[a] - f.Order[b] })
	scores := map[string]bool{product.Outputs[0]: true}
	var list []Bias
	for _, n := range inOrder {
		reads := ir.Reads(n)
		if !slices.ContainsFunc(reads, func(v string) bool { return scores[v] }) {
			continue
		}
		for _, v := range n.Outputs {
			scores[v] = true
		}
		for _, v := range reads {
			if scores[v] || !f.IsData(v) {
				continue
			}
			if !ir.Standard(n, "Add", "Sub", "Sum") {
				return nil, graph.Refuse(softmax, "its scores also depend on the hidden state %q, which is not added to the product of query and key: they are combined at %s (%s)", short.Name(v), ir.Label(n), short.Name(n.OpType))
			}
			b := f.behindMask(v)
			if f.Internal[b] {
				return nil, graph.Refuse(softmax, "its scores also depend on %q, a hidden state from inside a fused op", short.Name(v))
			}
			subtracted := ir.Standard(n, "Sub") && n.Inputs[1] == v
			bias := Bias{Value: b, Subtracted: subtracted, Hides: subtracted || !f.bounded(b)}
			if !slices.Contains(list, bias) {
				list = append(list, bias)
			}
		}
	}
	return list, nil
}

// behindMask follows a value that is added to scores back through what repeats it and what
// masks it, to the nearest value of the model that holds hidden states alone. What stands
// in front of that is measured together with the mask, which may be causal.
func (f *Finder) behindMask(v string) string {
	found := v
	for v != "" {
		if !f.Internal[v] {
			found = v
		}
		n, from := f.Producer[v], ""
		switch {
		case rearranges(n):
			from = n.Inputs[0]
		case ir.Standard(n, "Where", "Add"):
			from = f.onlyState(n.Inputs)
		}
		if !f.IsData(from) || !ir.IsFloat(f.Element(from)) {
			break
		}
		v = from
	}
	return found
}

// rearranges reports whether a node gives the elements of its first input, some of them
// several times.
func rearranges(n *onnx.Node) bool {
	return ir.Standard(n, "Identity", "Cast", "Reshape", "Unsqueeze", "Squeeze", "Transpose", "Expand", "Tile")
}

// onlyState returns the one of some values that depends on hidden states, "" where several
// do.
func (f *Finder) onlyState(values []string) (found string) {
	for _, v := range values {
		if !f.IsData(v) {
			continue
		}
		if found != "" {
			return ""
		}
		found = v
	}
	return found
}

// bounded reports whether a value is certainly never a large negative number, by the
// function that gives it.
func (f *Finder) bounded(v string) bool {
	n := f.Producer[v]
	for rearranges(n) {
		n = f.Producer[n.Inputs[0]]
	}
	return ir.Standard(n, "Exp", "Sigmoid", "Softplus", "Relu", "Softmax", "Abs", "Sqrt", "Tanh")
}

// ScoresFrom returns what the softmax's input is computed from: the product of query and
// key, and hidden states that are added to it.
func (s *Site) ScoresFrom() []string { return append([]string{s.Scores()}, s.biasValues()...) }

// biasValues lists the hidden states that are added to the scores.
func (s *Site) biasValues() (list []string) {
	for _, b := range s.Biases {
		list = append(list, b.Value)
	}
	return list
}

// ownBias refuses a bias that is computed from the site's query or key as they enter the
// product. A method changes these, and what it should make of such a bias is not known.
func (s *Site) ownBias() *graph.Refusal {
	boundaries := append(s.States(), slices.Concat(s.Query.entering(), s.Key.entering())...)
	turned := map[string]bool{s.Key.Past(): true}
	s.Graph.Upstream(s.ScoresMatMul.Inputs, func(v string, n *onnx.Node) []string {
		if n == nil || !s.Graph.IsData(v) || slices.Contains(boundaries, v) {
			return nil
		}
		turned[v] = true
		return ir.Reads(n)
	})
	var own string
	s.Graph.Upstream(s.biasValues(), func(v string, n *onnx.Node) []string {
		switch {
		case own != "" || !s.Graph.IsData(v):
		case turned[v]:
			own = v
		case n != nil && !slices.Contains(boundaries, v):
			return ir.Reads(n)
		}
		return nil
	})
	if own != "" {
		return graph.Refuse(s.Softmax, "the bias on its scores depends on %q, its own query or key after the rotation; expected a bias that does not", short.Name(own))
	}
	return nil
}
