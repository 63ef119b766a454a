package triton

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// types are Triton's names of the types that inputs and outputs of language models have.
var types = map[onnx.DataType]string{
	onnx.Bool: "TYPE_BOOL", onnx.Int8: "TYPE_INT8", onnx.Int16: "TYPE_INT16", onnx.Int32: "TYPE_INT32", onnx.Int64: "TYPE_INT64",
	onnx.Uint8: "TYPE_UINT8", onnx.Uint16: "TYPE_UINT16", onnx.Uint32: "TYPE_UINT32", onnx.Uint64: "TYPE_UINT64",
	onnx.Float16: "TYPE_FP16", onnx.BFloat16: "TYPE_BF16", onnx.Float: "TYPE_FP32", onnx.Double: "TYPE_FP64",
}

// Config is the text of config.pbtxt of a model: its name in the repository, every input and output with
// its whole shape (the server adds no batch axis, because caches have theirs elsewhere), and the op library by the
// path that the server has for it; "" needs none. The error names an input or output that Triton does not know.
func Config(name string, m *onnx.Model, library string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\nbackend: \"onnxruntime\"\ndefault_model_filename: \"model.onnx\"\nmax_batch_size: 0\n", strconv.Quote(name))
	if library != "" {
		fmt.Fprintf(&b, "model_operations { op_library_filename: %s }\n", strconv.Quote(library))
	}
	initial := map[string]bool{} // a default value makes an input one that need not be fed
	for _, t := range m.Graph.Initializers {
		initial[t.Name] = true
	}
	for _, v := range m.Graph.Inputs {
		if err := value(&b, "input", v, initial[v.Name]); err != nil {
			return "", err
		}
	}
	for _, v := range m.Graph.Outputs {
		if err := value(&b, "output", v, false); err != nil {
			return "", err
		}
	}
	b.WriteString("instance_group { kind: KIND_CPU }\n")
	return b.String(), nil
}

// value writes one input or output.
func value(b *strings.Builder, kind string, v *onnx.ValueInfo, optional bool) error {
	kindOf, known := types[v.Type]
	if !known || !v.HasShape {
		return fmt.Errorf("%s %s is of a type, or of a shape, that Triton does not serve", kind, v.Name)
	}
	dims := make([]string, len(v.Shape))
	for i, d := range v.Shape {
		dims[i] = "-1"
		if d.Value > 0 {
			dims[i] = strconv.FormatInt(d.Value, 10)
		}
	}
	if len(dims) == 0 {
		dims = []string{"1"} // Triton has no scalars
	}
	fmt.Fprintf(b, "%s { name: %s data_type: %s dims: [ %s ]", kind, strconv.Quote(v.Name), kindOf, strings.Join(dims, ", "))
	if optional {
		b.WriteString(" optional: true")
	}
	b.WriteString(" }\n")
	return nil
}
