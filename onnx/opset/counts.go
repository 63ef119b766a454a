package opset

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// CheckCounts returns an error about the first node of a standard operator that has more or fewer
// inputs or outputs than its version takes. No runtime loads such a model. Nodes of versions and
// operators that are not in the table pass, and so do calls of functions of the model's own.
func CheckCounts(m *onnx.Model) error {
	t, err := readTable()
	if err != nil {
		return err
	}
	own := map[string]bool{}
	for _, f := range m.Functions {
		own[f.Name] = own[f.Name] || standard(f.Domain)
	}
	if err := t.checkCounts(m.Graph.Nodes, m.Opsets(), own); err != nil {
		return err
	}
	for _, f := range m.Functions {
		if err := t.checkCounts(f.Nodes, f.Opsets, own); err != nil {
			return fmt.Errorf("function %q: %w", short.Name(f.Name), err)
		}
	}
	return nil
}

func (t *table) checkCounts(nodes []*onnx.Node, opsets []onnx.Opset, own map[string]bool) error {
	at, err := standardVersion(opsets)
	if err != nil || at < t.oldest || at > t.newest {
		return nil // which the runtime judges
	}
	for i, n := range nodes {
		for sub := range n.Subgraphs() {
			if err := t.checkCounts(sub.Nodes, opsets, own); err != nil {
				return err
			}
		}
		v, known := t.at(n.OpType, at)
		if last, runtimes := ofRuntime()[n.OpType]; !known || !standard(n.Domain) || own[n.OpType] || runtimes && (last == 0 || at <= last) {
			continue
		}
		if !v.inputs.has(len(n.Inputs)) {
			return fmt.Errorf("node %d (%s %q) has %d inputs, and the operator takes %v", i, short.Name(n.OpType), short.Name(n.Name), len(n.Inputs), v.inputs)
		}
		if !v.outputs.has(len(n.Outputs)) {
			return fmt.Errorf("node %d (%s %q) has %d outputs, and the operator gives %v", i, short.Name(n.OpType), short.Name(n.Name), len(n.Outputs), v.outputs)
		}
	}
	return nil
}
