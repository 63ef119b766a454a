// Package fusedtest tests adapters of fused ops: each case is a node with its
// inputs and what the onnx package's reference evaluator makes of them in
// float64 (fused/testdata/make_cases.py wrote both). The expansion and ONNX
// Runtime's own kernel are held against that.
//
//	for _, c := range fusedtest.Read(t, "testdata/cases.json") {
//		t.Run(c.Name, func(t *testing.T) { c.Check(t, onnxattention.Adapter()) })
//	}
package fusedtest
