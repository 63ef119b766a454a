package fusedtest

import (
	"context"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Evaluate runs nodes of opset 21 and com.microsoft ones on feeds; outputs names
// what is returned.
func Evaluate(t testruntime.TB, nodes []*onnx.Node, constants []*onnx.Tensor, feeds map[string]engine.Tensor, outputs ...string) map[string]engine.Tensor {
	t.Helper()
	out, err := Run(nodes, constants, feeds, outputs...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Run is Evaluate for nodes that may not run.
func Run(nodes []*onnx.Node, constants []*onnx.Tensor, feeds map[string]engine.Tensor, outputs ...string) (map[string]engine.Tensor, error) {
	m := onnx.New()
	m.RequireIR(10)
	m.RequireOpset("", 21)
	m.RequireOpset("com.microsoft", 1)
	m.Graph.Name, m.Graph.Nodes, m.Graph.Initializers = "test", nodes, constants
	load := engine.Model{Outputs: outputs}
	for name, f := range feeds {
		load.Inputs = append(load.Inputs, name)
		m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: name, Type: f.Type})
	}
	for _, name := range outputs {
		m.Graph.Outputs = append(m.Graph.Outputs, &onnx.ValueInfo{Name: name})
	}
	var err error
	if load.Bytes, err = m.Marshal(); err != nil {
		return nil, err
	}
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		return nil, err
	}
	session, err := eng.Load(context.Background(), load)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	return session.Run(context.Background(), feeds)
}
