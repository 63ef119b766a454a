package plainonnx_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/plainonnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// A layer that sees all earlier keys is to see the two nearest ones. Nothing is to be
// measured again, since no constant changes. What is more than hiding keys and changing
// frequencies is refused.
func Example() {
	m := onnx.New()
	m.RequireIR(8)
	m.RequireOpset("", 18)
	m.Graph.Inputs = []*onnx.ValueInfo{{Name: "scores", Type: onnx.Float}}
	m.Graph.Outputs = []*onnx.ValueInfo{{Name: "probabilities"}}
	softmax := onnx.NewNode("Softmax", []string{"scores"}, []string{"probabilities"})
	m.Graph.Nodes = []*onnx.Node{softmax}
	g, err := graph.New(m)
	if err != nil {
		fmt.Println(err)
		return
	}
	layer := plainonnx.Layer{Number: 3, Attention: measure.Attention{
		Scope:    &site.Scope{View: g},
		Site:     &site.Sized{Site: site.Site{Core: site.Core{Softmax: softmax}}},
		Measured: &measure.Measured{Attention: rope.Attention{Scale: 1, Mask: rope.Mask{Causal: true}}, Layouts: &site.Layouts{}},
	}}

	layer.Want = layer.Measured.Attention.Clone()
	layer.Want.Mask.Window = 2
	if err := errors.Join(plainonnx.Write(context.Background(), m, []plainonnx.Layer{layer}, nil), ir.Order(m.Graph)); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the softmax reads", softmax.Inputs[0])
	n := m.Graph.Nodes[len(m.Graph.Nodes)-2]
	fmt.Println("which is", n.OpType, n.Inputs)

	layer.Want.Chunk = 16
	err = plainonnx.Write(context.Background(), m, []plainonnx.Layer{layer}, nil)
	if refused := (*plainonnx.LayerError)(nil); errors.As(err, &refused) {
		fmt.Println("layer", refused.Layer, "is refused:", refused)
	}
	// Output:
	// the softmax reads rope_rewrite/scores/shown
	// which is Where [rope_rewrite/scores/visible_0 scores rope_rewrite/scores/lowest]
	// layer 3 is refused: the method changes more than frequencies, gain and visible keys
}
