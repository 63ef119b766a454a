package control

import (
	"cmp"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Part is what a piece does with integers.
type Part struct {
	// Runs are the numbers above Small that integers are compared with, added to or cut at, without their signs:
	// numbers that follow each other in one list, the smallest first.
	Runs [][]int64
	// Fixed is the smallest number above Small that cannot be replaced; 0 where all can.
	Fixed int64
	// Other is a node that does more with integers than compare, add and slice, and what it gives decides
	// something; nil for none.
	Other *onnx.Node

	piece   *eval.Piece
	readers []reader
	few     map[string]bool // values that hold one of a few numbers each, however many tokens there are
}

// Small is the largest number that small calls reach without a copy.
const Small = 5

// endless is from where on a number stands for the end of something.
const endless = math.MaxInt32

// reader is an input of a node that is a constant number.
type reader struct {
	node   *onnx.Node
	input  int
	tensor *onnx.Tensor
	number int64 // without its sign
}

// Of reads the piece. flags is an input whose elements are 0 or 1, "" for none.
func Of(p *eval.Piece, flags string) *Part {
	c := &Part{piece: p, few: map[string]bool{flags: true}}
	consts := map[string]*onnx.Tensor{}
	for _, t := range p.Consts {
		consts[t.Name] = t
	}
	for _, n := range p.Nodes {
		if c.constant(n) {
			continue
		}
		for i, v := range n.Inputs {
			if v == "" || !compares(n, i, ir.IsFloat(p.Graph.Element(v))) || p.Graph.Classes[v] != graph.ConstantClass {
				continue
			}
			c.read(n, i, consts[v])
		}
	}
	c.group()
	c.Other = c.other()
	return c
}

// constant reports whether a node computes a constant, or hidden states of nothing but hidden states.
func (c *Part) constant(n *onnx.Node) bool {
	g := c.piece.Graph
	return !slices.ContainsFunc(n.Inputs, func(v string) bool {
		return v != "" && (g.Classes[v] == graph.ShapeClass || g.Classes[v] == graph.PositionClass)
	})
}

// compares reports whether an input of a node is compared with integers, added to them or where they are cut.
func compares(n *onnx.Node, input int, float bool) bool {
	switch {
	case ir.Standard(n, "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", "Min", "Max", "Clip", "Mod", "Range"):
		return true
	case ir.Standard(n, "Add", "Sub"):
		return !float // a number that is added to floats is one of the scores
	case ir.Standard(n, "Where"):
		return !float && input > 0
	case ir.Standard(n, "Slice"):
		return input == 1 || input == 2
	case ir.Standard(n, "Trilu"):
		return input == 1
	}
	return false
}

// read notes the constant number that a node compares with.
func (c *Part) read(n *onnx.Node, input int, t *onnx.Tensor) {
	if t == nil { // it is computed from constants
		c.Fix(Small + 1)
		return
	}
	numbers, err := t.Float64s()
	if err != nil {
		c.Fix(Small + 1)
		return
	}
	for _, x := range numbers {
		number := int64(math.Abs(x))
		switch {
		case math.Abs(x) <= Small || math.Abs(x) >= endless || math.IsNaN(x):
		case len(numbers) > 1 || float64(number) != math.Abs(x) || !ir.IsFloat(t.Type) && t.Type != onnx.Int64 && t.Type != onnx.Int32:
			c.Fix(number)
		default:
			c.readers = append(c.readers, reader{n, input, t, number})
		}
	}
}

// Fix notes a number that cannot be replaced.
func (c *Part) Fix(number int64) {
	if c.Fixed == 0 || number < c.Fixed {
		c.Fixed = number
	}
}

// group puts the numbers that were read in order.
func (c *Part) group() {
	slices.SortStableFunc(c.readers, func(a, b reader) int { return cmp.Compare(a.number, b.number) })
	for _, r := range c.readers {
		last := len(c.Runs) - 1
		switch {
		case last < 0 || r.number > c.Runs[last][len(c.Runs[last])-1]+1:
			c.Runs = append(c.Runs, []int64{r.number})
		case r.number > c.Runs[last][len(c.Runs[last])-1]:
			c.Runs[last] = append(c.Runs[last], r.number)
		}
	}
}
