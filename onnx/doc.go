// Package onnx opens, edits and saves ONNX model files without touching what
// it is not asked to touch.
//
// [Open] maps the file into memory. Weights stay there: [Tensor.Bytes] is a
// slice of the map, wherever the file holds raw data. The structure (nodes,
// attributes, values, functions) is shown as plain Go structs that may be
// changed freely:
//
//	m, err := onnx.Open("model.onnx")
//	...
//	defer m.Close()
//	for n := range m.Graph.AllNodes() {
//		fmt.Println(n.OpType, n.Int("axis", 0))
//	}
//	m.Graph.InsertNode(nil, onnx.NewNode("Identity", []string{"x"}, []string{"y"}))
//	m.RequireOpset("", 18)
//	err = m.Save("edited.onnx", onnx.SaveOptions{})
//
// # How saving keeps what was not changed
//
// Every struct remembers the bytes in which it was read, its source. To save,
// the source is read once more and compared, field by field, with what the
// struct says now. Fields that say the same are copied from the source as they
// stand, together with all fields that this package does not know; only the
// others are encoded. So a model in which nothing was changed is written byte
// for byte unchanged, however unusual its encoding, and in a changed one every
// untouched part is. Nothing needs to be marked as changed, and copies of a
// struct ([Node.Clone]), also in another model, keep their source. The files
// splice.go and group.go hold this mechanism; the *_view.go files and those
// named after a struct say what each struct reads and writes.
//
// # External data
//
// Weights outside the model's file are mapped when a tensor's contents are
// first asked for, so that a model can be examined and edited without them.
// [Model.Save] to another folder links or copies those files. Locations that
// lead out of the model's folder are refused; links may lead to the folder
// where the model really stands, as in the Hugging Face cache.
//
// # Limits
//
// Hostile files give errors that wrap [ErrFormat], not panics: graphs may be
// nested 48 deep, tensors have 64 dimensions and a model a million parts.
// Writing into the file while it is mapped is not guarded against. [Open]
// does not check that a graph makes sense; [Model.CheckValues] and
// [Model.UnreadableData] do as far as it can be seen without evaluating it. It
// refuses a model in which two things have one name, such as two initializers:
// runtimes differ in which of them they read.
package onnx
