package onnxeinsum

import (
	"strings"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
)

// Adapter reads ONNX Einsum.
func Adapter() fused.Adapter { return fused.Adapter{OpType: "Einsum", Expand: expand} }

func expand(n *onnx.Node, _ fused.Context) (*fused.Expansion, error) {
	if err := fused.Known(n, "equation"); err != nil {
		return nil, err
	}
	equation := n.Text("equation", "")
	operands := 1 + strings.Count(equation, ",")
	if err := fused.Arity(n, operands, operands, 1); err != nil {
		return nil, err
	}
	p, ok := parse(equation)
	if !ok {
		return &fused.Expansion{Nodes: []*onnx.Node{n}}, nil
	}
	b := fused.NewBuilder(n)
	// [common…, own, summed] · [common…, summed, own] = [common…, first's, second's]
	var both []string
	for i, letters := range []struct{ has, wanted string }{{p.first, p.common + p.rows + p.summed}, {p.second, p.common + p.summed + p.columns}} {
		value := n.Inputs[i]
		if letters.has != letters.wanted {
			value = b.Add("Transpose", []string{value}, onnx.IntsAttr("perm", order(letters.has, letters.wanted)...))
		}
		both = append(both, value)
	}
	made := p.common + p.rows + p.columns
	if made == p.out {
		b.AddTo(n.Outputs[0], "MatMul", both)
		return b.Expansion(), nil
	}
	b.AddTo(n.Outputs[0], "Transpose", []string{b.Add("MatMul", both)}, onnx.IntsAttr("perm", order(made, p.out)...))
	return b.Expansion(), nil
}

// product is an equation that is a product of matrices: the dimensions of the
// operands and of the result by letters, and what each letter is.
type product struct {
	first, second, out            string
	common, rows, columns, summed string
}

// parse reads an equation; ok is false where it is no product of matrices.
func parse(equation string) (p product, ok bool) {
	equation = strings.ReplaceAll(equation, " ", "")
	operands, out, found := strings.Cut(equation, "->")
	p.first, p.second, ok = strings.Cut(operands, ",")
	p.out = out
	if !ok || !found {
		return p, false
	}
	seen := map[rune]int{} // in which operands a letter stands: 1, 2 or 3 for both
	for i, letters := range []string{p.first, p.second} {
		for _, r := range letters {
			if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') || seen[r]&(i+1) != 0 {
				return p, false // "...", a diagonal or another comma
			}
			seen[r] |= i + 1
		}
	}
	given := map[rune]bool{}
	for _, r := range out {
		if given[r] || seen[r] == 0 {
			return p, false
		}
		given[r] = true
		switch seen[r] {
		case 1:
			p.rows += string(r)
		case 2:
			p.columns += string(r)
		default:
			p.common += string(r)
		}
	}
	for _, r := range p.first {
		if !given[r] {
			p.summed += string(r)
		}
	}
	for _, r := range p.second {
		if !given[r] && seen[r] != 3 {
			return p, false
		}
	}
	return p, len(p.rows) == 1 && len(p.columns) == 1 && len(p.summed) == 1 && seen[rune(p.summed[0])] == 3
}

// order is the permutation that brings letters into another order.
func order(from, to string) []int64 {
	perm := make([]int64, len(to))
	for i := range to {
		perm[i] = int64(strings.IndexByte(from, to[i]))
	}
	return perm
}
