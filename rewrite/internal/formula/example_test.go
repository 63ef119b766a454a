package formula_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/formula"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// A mask that is causal, but for one key of one query: no call of fewer than 1,008 tokens shows that.
func ExampleReader_Decide() {
	m := ir.EmptyModel(&onnx.Model{})
	m.Graph.Inputs = []*onnx.ValueInfo{{Name: "query", Type: onnx.Float}}
	m.Graph.Outputs = []*onnx.ValueInfo{{Name: "scores"}}
	m.Graph.Initializers = []*onnx.Tensor{
		ir.Int64Tensor("0", []int64{}, 0), ir.Int64Tensor("1", []int64{}, 1), ir.Int64Tensor("1007", []int64{}, 1007), ir.Int64Tensor("[1]", []int64{1}, 1),
		ir.FloatTensor("hidden", onnx.Float, []int64{}, -1e9),
	}
	node := func(op, out string, in ...string) {
		m.Graph.Nodes = append(m.Graph.Nodes, onnx.NewNode(op, in, []string{out}))
	}
	node("Shape", "sizes", "query") // [batch, heads, length, length]
	node("Gather", "length", "sizes", "[1]")
	node("Squeeze", "tokens", "length")
	node("Range", "keys", "0", "tokens", "1")
	node("Unsqueeze", "queries", "keys", "[1]")
	node("LessOrEqual", "causal", "keys", "queries")
	node("Equal", "rare", "queries", "1007")
	node("Or", "seen", "causal", "rare")
	node("Where", "scores", "seen", "query", "hidden")
	g, err := graph.New(m)
	if err != nil {
		fmt.Println(err)
		return
	}
	piece, err := eval.Extract(g, []string{"scores"}, []string{"query"})
	if err != nil {
		fmt.Println(err)
		return
	}
	scores := []dim.Extent{dim.BatchExtent, dim.ConstantExtent(4), dim.LengthExtent, dim.LengthExtent}
	table := &eval.ShapeTable{Sizes: map[string][]dim.Extent{"sizes": {dim.BatchExtent, dim.LengthExtent}}}
	column, row := []dim.Extent{dim.LengthExtent, dim.ConstantExtent(1)}, []dim.Extent{dim.LengthExtent}
	r := formula.NewReader(piece, table, map[string][]dim.Extent{
		"query": scores, "scores": scores, "sizes": {dim.ConstantExtent(2)}, "length": {dim.ConstantExtent(1)}, "tokens": {}, "keys": row, "queries": column,
		"causal": {dim.LengthExtent, dim.LengthExtent}, "rare": column, "seen": {dim.LengthExtent, dim.LengthExtent},
	}, "query", "")
	causal := func(p formula.Point, sees bool) bool { return sees == (p.Distance() >= 0) }
	differs, _, err := r.Decide("scores", dim.Grid{Heads: 4}, causal, 0, -9000)
	fmt.Println(differs, err)
	// Output:
	// with 0 cached and 1009 new tokens, of the query at 1007 and the key at 1008 <nil>
}
