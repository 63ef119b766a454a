package graph_test

import (
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// TestPicksRows: an input picks rows of a table where the numbers of tokens do, and not where another op, another
// input or a table of two rows reads them.
func TestPicksRows(t *testing.T) {
	node := func(op, inputs string, attributes ...*onnx.Attribute) *onnx.Node {
		n := onnx.NewNode(op, strings.Fields(inputs), []string{"y"}, attributes...)
		if op == "EmbedLayerNormalization" {
			n.Domain = "com.microsoft"
		}
		return n
	}
	branch := func(op, inputs string) []*onnx.Attribute {
		inside := func() *onnx.Graph {
			return &onnx.Graph{Nodes: []*onnx.Node{onnx.NewNode(op, strings.Fields(inputs), []string{"inside"})}, Outputs: []*onnx.ValueInfo{{Name: "inside"}}}
		}
		return []*onnx.Attribute{onnx.GraphAttr("then_branch", inside()), onnx.GraphAttr("else_branch", inside())}
	}
	for name, c := range map[string]struct {
		node *onnx.Node
		want bool
	}{
		"a table":              {node("Gather", "table ids"), true},
		"a table of two rows":  {node("Gather", "pair ids"), false},
		"a sum":                {node("Add", "row ids"), false},
		"tokens of BERT":       {node("EmbedLayerNormalization", "ids kinds table table pair scale scale"), true},
		"kinds of BERT":        {node("EmbedLayerNormalization", "kinds ids table table pair scale scale"), false},
		"padding of BERT":      {node("EmbedLayerNormalization", "kinds kinds table table pair scale scale ids"), false},
		"a table in a branch":  {node("If", "flag", branch("Gather", "table ids")...), true},
		"two rows in a branch": {node("If", "flag", branch("Gather", "pair ids")...), false},
	} {
		t.Run(name, func(t *testing.T) {
			m := onnx.New()
			m.RequireOpset("", 17)
			for _, input := range []string{"ids", "kinds"} {
				m.Graph.AddInput(onnx.NewValueInfo(input, onnx.Int64, onnx.Dim{Param: "batch"}, onnx.Dim{Param: "length"}))
			}
			m.Graph.AddInput(onnx.NewValueInfo("flag", onnx.Bool))
			m.Graph.Initializers = []*onnx.Tensor{
				ir.Float32Tensor("table", []int64{3, 2}, 1, 2, 3, 4, 5, 6), ir.Float32Tensor("pair", []int64{2, 2}, 1, 2, 3, 4),
				ir.Float32Tensor("scale", []int64{2}, 1, 1), ir.Int64Tensor("row", []int64{1}, 7),
			}
			m.Graph.Nodes = []*onnx.Node{c.node}
			m.Graph.Outputs = []*onnx.ValueInfo{{Name: "y"}}
			g, err := graph.New(m)
			if err != nil {
				t.Fatal(err)
			}
			if got := g.PicksRows("ids"); got != c.want {
				t.Errorf("picks rows: %t, %t was expected", got, c.want)
			}
		})
	}
}
