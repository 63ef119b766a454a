package site

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// hasher hashes how a site's values are computed: ops, attributes, all constants, the
// shapes at the boundaries, and sizes. Two sites with the same hash compute the same
// function, so they share one measurement and one proof.
type hasher struct {
	graph      *graph.Graph
	table      *eval.ShapeTable
	leaves     map[string]string   // boundary → which inputs of the site it is
	memo       map[string][32]byte // by value, for this site
	dataLeaves bool                // all leaves are hidden states, so that other values do not depend on them
	shared     map[string][32]byte // by value that does not depend on leaves, for all sites of a graph: their tables are large, and they share angles and masks
}

// Hash returns a hash of the function that the site computes. shared keeps the hashes of
// values that several sites of the graph use; the caller gives the same map for all.
func (s *Site) Hash(g *graph.Graph, t *eval.ShapeTable, shared map[string][32]byte) [32]byte {
	h := &hasher{graph: g, table: t, leaves: map[string]string{}, memo: map[string][32]byte{}, shared: shared}
	leaf := func(value, role string) { h.leaves[value] += role + ";" }
	for _, b := range []struct {
		branch Branch
		role   string
	}{{s.Query, "query"}, {s.Key, "key"}, {s.Value, "value"}} {
		for i, boundary := range b.branch.entering() {
			leaf(boundary, fmt.Sprint(b.role, i))
		}
	}
	if s.Past() {
		leaf(s.Key.Past(), "past key")
		if s.Alone == 0 {
			leaf(s.Value.Past(), "past value")
		}
	}
	for i, b := range s.Biases {
		leaf(b.Value, fmt.Sprint("bias", i, b.Subtracted, b.Hides))
	}
	h.dataLeaves = len(g.Written) == 0
	for v := range h.leaves {
		h.dataLeaves = h.dataLeaves && g.IsData(v)
	}
	sum := sha256.New()
	fmt.Fprint(sum, t.Static, s.Turns, s.Crosses, s.Alone)
	// Pieces between these values are measured, so all of them belong to the hash.
	values := s.Results()
	if s.Alone == 0 {
		values = append([]string{s.Scores(), s.SoftmaxInput(), s.Softmax.Outputs[0], s.ValueMatMul.Inputs[0],
			s.Query.Operand, s.Key.Cached(), s.Key.Operand, s.Value.Cached(), s.Value.Operand}, values...)
	}
	for _, v := range values {
		x := h.value(v)
		sum.Write(x[:])
	}
	return [32]byte(sum.Sum(nil))
}

// value returns the hash of one value.
func (h *hasher) value(v string) [32]byte {
	memo := h.memo
	if h.leaves[v] == "" && (h.graph.Constants[v] != nil || h.dataLeaves && !h.graph.IsData(v)) {
		memo = h.shared
	}
	if sum, ok := memo[v]; ok {
		return sum
	}
	var sum [32]byte
	w := sha256.New()
	n := h.graph.Producer[v]
	switch {
	case v == "":
	case h.leaves[v] != "":
		fmt.Fprintf(w, "cut %s %v", h.leaves[v], h.table.Dims[v])
	case h.graph.Constants[v] != nil:
		ir.HashTensor(w, h.graph.Constants[v])
	case n == nil:
		fmt.Fprintf(w, "input %q %v", v, h.table.Inputs[v])
	case h.graph.Classes[v] == graph.ShapeClass && ir.Standard(n, "Shape", "Size"):
		fmt.Fprintf(w, "size %v", h.table.Sizes[v])
		if _, ok := h.table.Sizes[v]; !ok {
			fmt.Fprintf(w, "unknown %q", v)
		}
	default:
		fmt.Fprintf(w, "%s %s %s %d(", n.Domain, n.OpType, n.Overload, slices.Index(n.Outputs, v))
		for _, in := range n.Inputs {
			x := h.value(in)
			w.Write(x[:])
		}
		ir.HashAttributes(w, n)
		h.fused(w, n)
	}
	w.Sum(sum[:0])
	memo[v] = sum
	return sum
}

// fused adds the fused node of the model that a primitive node was expanded from: the
// proof runs the fused node.
func (h *hasher) fused(w hash.Hash, n *onnx.Node) {
	o := h.graph.Written[n]
	if o == nil {
		return
	}
	fmt.Fprintf(w, "part of %s %s %d(", o.Domain, o.OpType, len(o.Outputs))
	for _, in := range o.Inputs {
		x := h.value(in)
		w.Write(x[:])
	}
	ir.HashAttributes(w, o)
}
