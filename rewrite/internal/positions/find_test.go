package positions_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/positions"
)

func TestMain(m *testing.M) {
	testruntime.Examples()
	os.Exit(m.Run())
}

// found looks for the positions that a graph computes, which multiplies a state by the cosine of what
// nodes make of the padding mask "mask" and the token ids "ids", both [batch, length].
func found(nodes ...*onnx.Node) (*positions.Computed, error) {
	m := onnx.New()
	m.RequireIR(8)
	m.RequireOpset("", 18)
	axes := []onnx.Dim{{Param: "batch"}, {Param: "length"}}
	for _, name := range []string{"mask", "ids"} {
		m.Graph.AddInput(onnx.NewValueInfo(name, onnx.Int64, axes...))
	}
	m.Graph.AddInput(onnx.NewValueInfo("state", onnx.Float, axes...))
	m.Graph.AddOutput(&onnx.ValueInfo{Name: "rotated"})
	for i := range int64(10) {
		m.Graph.AddInitializer(ir.Int64Tensor(fmt.Sprint(i), nil, i))
	}
	m.Graph.Nodes = append(nodes,
		ir.Cast("at", "angle", onnx.Float),
		onnx.NewNode("Cos", []string{"angle"}, []string{"cos"}),
		onnx.NewNode("Mul", []string{"state", "cos"}, []string{"rotated"}))
	g, err := graph.New(m)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		return nil, err
	}
	defer eng.Close()
	table, err := eval.MeasureShapes(ctx, eng, g, []string{"state", "rotated"})
	if err != nil {
		return nil, err
	}
	ev := &eval.Evaluator{Graph: g, Loader: eval.Loader{Engine: eng, Table: table}}
	return positions.Find(ctx, ev, "rotated", []string{"state"}, g.Inputs["mask"])
}

func node(op, output string, inputs ...string) *onnx.Node {
	return onnx.NewNode(op, inputs, []string{output})
}

// Each token counts the tokens up to it, and padded ones are 1.
func ExampleFind() {
	c, err := found(
		node("CumSum", "count", "mask", "1"),
		node("Sub", "from_0", "count", "1"),
		node("Equal", "padded", "mask", "0"),
		node("Where", "at", "padded", "1", "from_0"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%q of %q, below 0: %v, not by index: %q\n", c.Value, c.Inputs[0].Name, c.Below0, c.Unlike)
	// Output: "at" of "mask", below 0: false, not by index: ""
}

func TestFind(t *testing.T) {
	testruntime.Require(t)
	count := node("CumSum", "count", "mask", "1")
	length := []*onnx.Node{node("Shape", "dims", "mask"), node("Gather", "length", "dims", "1"), node("Range", "index", "0", "length", "1")}
	with := func(list []*onnx.Node, more ...*onnx.Node) []*onnx.Node {
		return append(append([]*onnx.Node{}, list...), more...)
	}
	for name, c := range map[string]struct {
		nodes  []*onnx.Node
		none   bool   // nothing is to be found
		unlike string // why they are not by index
		below0 bool
		value  string
	}{
		"an input":              {nodes: []*onnx.Node{node("Identity", "at", "ids")}, none: true},
		"an input, twice":       {nodes: []*onnx.Node{node("Mul", "at", "ids", "2")}, none: true},
		"an input and 2":        {nodes: []*onnx.Node{node("Add", "at", "ids", "2")}},
		"an input, limited":     {nodes: []*onnx.Node{node("Min", "at", "ids", "9")}, unlike: `input "ids"`},
		"indices":               {nodes: with(length, node("Identity", "at", "index")), none: true},
		"indices, twice":        {nodes: with(length, node("Mul", "at", "index", "2")), none: true},
		"indices and 3":         {nodes: with(length, node("Add", "at", "index", "3"))},
		"minus the length":      {nodes: with(length, node("Sub", "at", "index", "length")), below0: true},
		"remainders":            {nodes: with(length, node("Mod", "at", "index", "7")), unlike: "not the index"},
		"counted":               {nodes: []*onnx.Node{count, node("Identity", "at", "count")}},
		"counted, less 3":       {nodes: []*onnx.Node{count, node("Sub", "at", "count", "3")}, below0: true},
		"counted, twice":        {nodes: []*onnx.Node{count, node("Mul", "at", "count", "2")}, unlike: "not the index"},
		"of ids that are not 5": {nodes: []*onnx.Node{node("Equal", "is", "ids", "5"), node("Not", "other", "is"), ir.Cast("other", "ones", onnx.Int64), node("CumSum", "at", "ones", "1")}, unlike: `input "ids"`},
		"of mask and ids":       {nodes: []*onnx.Node{count, node("Add", "at", "count", "ids")}, unlike: `input "ids"`},
		"halves":                {nodes: []*onnx.Node{count, ir.Cast("count", "float", onnx.Float), ir.Cast("2", "two", onnx.Float), node("Div", "at", "float", "two")}, value: "count"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := found(c.nodes...)
			switch {
			case err != nil:
				t.Fatal(err)
			case c.none != (got == nil):
				t.Fatalf("found %+v", got)
			case c.none:
				return
			case got.Below0 != c.below0:
				t.Errorf("below 0 is %v", got.Below0)
			case (got.Unlike == "") != (c.unlike == "") || !strings.Contains(got.Unlike, c.unlike):
				t.Errorf("not by index: %q, %q was expected", got.Unlike, c.unlike)
			}
			if c.value != "" && got.Value != c.value {
				t.Errorf("the value is %q, %q was expected", got.Value, c.value)
			}
		})
	}
}
