package rewrite

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// A mask that is none of the op's own kinds stays what it is: a bias on the
// scores that the exporter's nodes compute. It is what these nodes make of
// scores of zero, so they are written once more with zeros for scores. Layers
// that share a mask come to share these nodes.

// explicit is the bias of a site: nodes, and the value that holds it.
type explicit struct {
	nodes     []*onnx.Node
	constants []*onnx.Tensor
	value     string
}

// scalarBias reports whether scores of one zero give the same bias as scores of
// as many zeros as there are.
func (s *scorer) scalarBias(ctx context.Context) bool {
	rng := rand.New(rand.NewPCG(11, 12))
	for i, pt := range []point{{2, 5, 4}, {3, 1, 9}, {1, 4, 0}} {
		pt = s.loaded.table.within(pt)
		given, err := s.given(rng, pt, padding(rng, pt, i))
		if err != nil {
			return false
		}
		_, want, err := s.rows(ctx, pt, zero, given)
		if err != nil {
			return false
		}
		given[s.in] = engine.Float32s(make([]float32, 1), 1, 1, 1, 1)
		_, sizes := s.sizes(pt)
		result, err := s.loaded.run(ctx, sizes, given)
		if err != nil || len(result[s.out].Dims) != 4 {
			return false
		}
		got := result[s.out]
		values := got.Values()
		computed, _ := s.sizes(pt)
		full := []int64{pt.B, s.heads, computed, pt.L + pt.P + s.extra}
		for d, n := range got.Dims {
			if n != 1 && n != full[d] || d == 3 && n != full[d] && s.extra > 0 {
				return false
			}
		}
		for r, row := range want {
			h, b, q := s.place(pt, r)
			for j, x := range row {
				at := int64(0)
				for d, i := range []int64{b, h, computed - pt.L + q, int64(j)} {
					at = at*got.Dims[d] + min(i, got.Dims[d]-1)
				}
				if values[at] != x {
					return false
				}
			}
		}
	}
	return true
}

// multiplies returns a node on the way from in to out that multiplies hidden
// states by what is no constant.
func (g *graph) multiplies(out, in string) (found *onnx.Node) {
	g.upstream([]string{out}, func(v string, n *onnx.Node) []string {
		if v == in || !g.isData(v) || n == nil {
			return nil
		}
		if standard(n, "Mul", "Div", "Pow", "MatMul", "Mod") &&
			slices.ContainsFunc(n.Inputs, func(x string) bool { return !g.isData(x) && g.classes[x] != constantClass }) {
			found = n
		}
		return n.Inputs
	})
	return found
}

// explicit writes the nodes that make a site's bias.
func (s *sizedSite) explicit(l *lifted) (*explicit, error) {
	g := s.graph
	e := &explicit{}
	names := map[string]string{}
	kind := g.element(s.scores())
	if l.scalarBias {
		zero := onnx.NewTensor(fmt.Sprintf("rope_rewrite/bias/zero_%v", kind), kind, []int64{1, 1, 1, 1}, make([]byte, kind.Size()))
		e.constants = append(e.constants, zero)
		names[s.scores()] = zero.Name
	} else {
		scores := l.layouts.scores
		shape, err := s.sizes(e, l, scores)
		if err != nil {
			return nil, err
		}
		names[s.scores()] = e.add(zeros(kind, shape, ""))
	}
	needed := map[*onnx.Node]bool{}
	inside := s.inside()
	var wrong error
	g.upstream([]string{s.softmaxInput()}, func(v string, n *onnx.Node) []string {
		switch {
		case names[v] != "":
		case g.constants[v] != nil && g.internal[v]:
			t := g.constants[v].Clone()
			w := sha256.New()
			writeTensor(w, t)
			t.Name = fmt.Sprintf("rope_rewrite/bias/%x", w.Sum(nil)[:8])
			names[v] = t.Name
			e.constants = append(e.constants, t)
		case n != nil && g.classes[v] == shapeClass && standard(n, "Shape", "Size") && inside[n.Inputs[0]]:
			// The op makes what it is the size of, or it is made no more.
			sizes, ok := s.table.sizes[v]
			if !ok || n.OpType == "Size" {
				wrong = fmt.Errorf("the bias needs the size %q", v)
				return nil
			}
			var err error
			if names[v], err = s.sizes(e, l, sizes); err != nil {
				wrong = err
			}
		case n == nil || !inside[v] && !g.internal[v] || g.constants[v] != nil:
			names[v] = v
		default:
			for range n.Subgraphs() {
				wrong = fmt.Errorf("the bias is computed by %s, which has a graph inside", label(n))
			}
			needed[n] = true
			return reads(n)
		}
		return nil
	})
	for _, n := range g.nodes {
		if !needed[n] {
			continue
		}
		c := n.Clone()
		c.Name = ""
		for i, v := range c.Inputs {
			if v != "" {
				c.Inputs[i] = names[v]
			}
		}
		e.add(c)
		for i, o := range n.Outputs {
			names[o] = c.Outputs[i]
		}
	}
	e.value = names[s.softmaxInput()]
	if l.layouts.sinks > 0 {
		from, to, axis := e.list(0), e.list(-l.layouts.sinks), e.list(3)
		e.value = e.add(onnx.NewNode("Slice", []string{e.value, from, to, axis}, []string{""}))
	}
	if to := g.element(s.query.cut); g.element(s.softmaxInput()) != to {
		e.value = e.add(cast(e.value, "", to))
	}
	return e, wrong
}

// sizes makes a list of sizes out of the shapes of what enters the site.
func (s *sizedSite) sizes(e *explicit, l *lifted, list []extent) (string, error) {
	dim := func(value string, i int64) string {
		shape := e.add(onnx.NewNode("Shape", []string{value}, []string{""}))
		return e.add(onnx.NewNode("Slice", []string{shape, e.list(i), e.list(i + 1)}, []string{""}))
	}
	batch, length := slices.Index(l.layouts.query.axes, batchAxis), slices.Index(l.layouts.query.axes, rowAxis)
	if batch < 0 || length < 0 {
		return "", fmt.Errorf("the bias needs the sizes %v, which the shape of %q does not tell", list, s.query.cut)
	}
	var parts []string
	for _, x := range list {
		if x.BL != 0 || x.BP != 0 {
			return "", fmt.Errorf("the bias needs the size %v", x)
		}
		var terms []string
		term := func(factor int64, of func() string) {
			switch factor {
			case 0:
			case 1:
				terms = append(terms, of())
			default:
				terms = append(terms, e.add(onnx.NewNode("Mul", []string{of(), e.list(factor)}, []string{""})))
			}
		}
		term(x.B, func() string { return dim(s.query.cut, int64(batch)) })
		term(x.L, func() string { return dim(s.query.cut, int64(length)) })
		if s.past() {
			term(x.P, func() string { return dim(s.key.past(), 2) })
		}
		if x.One != 0 || len(terms) == 0 {
			terms = append(terms, e.list(x.One))
		}
		sum := terms[0]
		for _, t := range terms[1:] {
			sum = e.add(onnx.NewNode("Add", []string{sum, t}, []string{""}))
		}
		parts = append(parts, sum)
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return e.add(onnx.NewNode("Concat", parts, []string{""}, onnx.IntAttr("axis", 0))), nil
}

// inside lists the values that depend on what enters the site: those that are
// taken out with it, and those that come after it.
func (s *sizedSite) inside() map[string]bool {
	cuts := s.cuts()
	inside := map[string]bool{}
	for _, n := range s.graph.nodes {
		for v := range uses(n) {
			cut := slices.Contains(cuts, v) && !standard(n, "Shape") // whose own shape can be read
			if !inside[v] && !cut {
				continue
			}
			for _, o := range n.Outputs {
				inside[o] = true
			}
			break
		}
	}
	return inside
}

// list makes a constant of one integer.
func (e *explicit) list(value int64) string {
	t := int64Tensor(fmt.Sprintf("rope_rewrite/bias/%d", value), []int64{1}, value)
	if !slices.ContainsFunc(e.constants, func(c *onnx.Tensor) bool { return c.Name == t.Name }) {
		e.constants = append(e.constants, t)
	}
	return t.Name
}

// add names a node's outputs after what they are and appends it, unless it is
// there already.
func (e *explicit) add(n *onnx.Node) string {
	w := sha256.New()
	fmt.Fprintf(w, "%q %q %q", n.Domain, n.OpType, n.Inputs)
	writeAttributes(w, n)
	sum := w.Sum(nil)[:8]
	for i := range n.Outputs {
		n.Outputs[i] = fmt.Sprintf("rope_rewrite/bias/%s_%x_%d", n.OpType, sum, i)
	}
	if !slices.ContainsFunc(e.nodes, func(c *onnx.Node) bool { return c.Outputs[0] == n.Outputs[0] }) {
		e.nodes = append(e.nodes, n)
	}
	return n.Outputs[0]
}
