package definition_test

import (
	"os"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
)

// A fingerprint is of a body and of the structure that it is for: numbers and names of nodes do not
// count, everything that the body computes does.
func TestFingerprint(t *testing.T) {
	of := func(opset int64, change func(*customop.RotaryAttention), damage func(*onnx.Model, *onnx.Function)) string {
		t.Helper()
		m := modelOf(opset, op(t, same), op(t, change))
		list, err := definition.Write(m)
		if err != nil {
			t.Fatal(err)
		}
		f := list[len(list)-1]
		damage(m, f)
		return definition.Fingerprint(m, f)
	}
	nothing := func(*onnx.Model, *onnx.Function) {}
	plain := of(17, same, nothing)
	if len(plain) != 32 || of(17, func(r *customop.RotaryAttention) { r.Scale = 0.5 }, nothing) != plain {
		t.Errorf("another scale is another body: %q", plain)
	}
	if of(16, same, nothing) != plain {
		t.Error("the version of the operators is the model's, and no part of a fingerprint")
	}
	banding := of(17, banded, nothing)
	if banding == plain || len(banding) != 32 {
		t.Error("bands have the same fingerprint")
	}
	for name, damage := range map[string]func(*onnx.Model, *onnx.Function){
		"for other nodes": func(m *onnx.Model, f *onnx.Function) {
			for _, n := range m.Graph.Nodes {
				n.OpType = map[string]string{"RotaryAttention": "RotaryAttention_2", "RotaryAttention_2": "RotaryAttention"}[n.OpType]
			}
		},
		"another op": func(_ *onnx.Model, f *onnx.Function) { f.Nodes[len(f.Nodes)-1].OpType = "Neg" },
		"a constant": func(_ *onnx.Model, f *onnx.Function) {
			for _, n := range f.Nodes {
				if v := n.Tensor("value"); v != nil {
					n.SetAttribute(onnx.TensorAttr("value", onnx.NewTensor(v.Name, onnx.Int64, []int64{1}, []byte{7, 0, 0, 0, 0, 0, 0, 0})))
					return
				}
			}
		},
		"other operators": func(_ *onnx.Model, f *onnx.Function) { f.Opsets[0].Version = 18 },
		"a default":       func(_ *onnx.Model, f *onnx.Function) { f.Attributes = append(f.Attributes, onnx.IntAttr("causal", 1)) },
		"what Text cannot tell": func(_ *onnx.Model, f *onnx.Function) {
			f.Nodes[0].SetAttribute(onnx.TensorAttr("value", onnx.NewTensor("half", onnx.Float16, []int64{1}, []byte{0, 60})))
		},
	} {
		if got := of(17, banded, damage); got == banding {
			t.Errorf("%s: the same fingerprint %s", name, got)
		}
	}
}

// Every line of the table is a fingerprint, once.
func TestTable(t *testing.T) {
	table, err := os.ReadFile(definition.KnownFile)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, line := range strings.Fields(string(table)) {
		if len(line) != 32 || seen[line] {
			t.Errorf("the line %q", line)
		}
		seen[line] = true
	}
	if len(seen) == 0 {
		t.Error("the table is empty")
	}
}
