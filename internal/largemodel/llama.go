package largemodel

import (
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

// Llama is the size of a decoder of Llama's kind: grouped heads, rotation of
// halves, float32, a growing cache.
type Llama struct {
	Layers, Heads, KVHeads, HeadSize int64
	Intermediate, Vocabulary         int64
	Theta                            float64
	Crowd                            Crowd
}

// Sizes of known models.
var (
	Llama8B  = Llama{Layers: 32, Heads: 32, KVHeads: 8, HeadSize: 128, Intermediate: 14336, Vocabulary: 128256, Theta: 500000}
	Llama70B = Llama{Layers: 80, Heads: 64, KVHeads: 8, HeadSize: 128, Intermediate: 28672, Vocabulary: 128256, Theta: 500000}
)

// DataFile is the name of the file with the weights, beside the model.
const DataFile = "weights.bin"

// Write writes folder/model.onnx and, if the weights are wanted, DataFile as a
// sparse file. It returns the model's path and the bytes of the weights.
func (l Llama) Write(folder string, weights bool) (path string, size int64, err error) {
	b := &builder{graph: &onnxpb.GraphProto{Name: proto.String("llama")}}
	b.decoder(l)
	model := &onnxpb.ModelProto{
		IrVersion:   proto.Int64(10),
		Graph:       b.graph,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(18)}},
	}
	data, err := proto.Marshal(model)
	if err != nil {
		return "", 0, err
	}
	path = filepath.Join(folder, "model.onnx")
	if err := os.WriteFile(path, data, 0o644); err != nil || !weights {
		return path, b.size, err
	}
	file := filepath.Join(folder, DataFile)
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		return "", 0, err
	}
	if err := os.Truncate(file, b.size); err != nil {
		return "", 0, fmt.Errorf("this file system has no sparse files: %w", err)
	}
	return path, b.size, nil
}

// decoder writes the whole graph.
func (b *builder) decoder(l Llama) {
	hidden := l.Heads * l.HeadSize
	b.input("input_ids", onnxpb.TensorProto_INT64, "batch", "length")
	b.input("attention_mask", onnxpb.TensorProto_INT64, "batch", "total")
	b.input("position_ids", onnxpb.TensorProto_INT64, "batch", "length")
	x := b.node("Gather", []string{b.weight("embed", l.Vocabulary, hidden), "input_ids"})
	cos, sin := b.angles(l)
	mask := b.mask(l)
	for i := range l.Layers {
		name := fmt.Sprintf("layers.%d", i)
		n := b.norm(x, name+".norm1", hidden)
		x = b.node("Add", []string{x, b.attention(l, name, n, cos, sin, mask, i)})
		n = b.norm(x, name+".norm2", hidden)
		gate := b.product(n, name+".gate", hidden, l.Intermediate)
		gate = b.node("Mul", []string{gate, b.node("Sigmoid", []string{gate})})
		up := b.product(n, name+".up", hidden, l.Intermediate)
		x = b.node("Add", []string{x, b.product(b.node("Mul", []string{gate, up}), name+".down", l.Intermediate, hidden)})
	}
	x = b.softmaxes(b.plain(x, l.Crowd.Plain), l.Crowd.Softmaxes)
	b.named("MatMul", []string{b.norm(x, "norm", hidden), b.weight("head", hidden, l.Vocabulary)}, "logits")
	b.output("logits", "batch", "length", l.Vocabulary)
}

// angles gives cosines and sines [batch, 1, length, head size].
func (b *builder) angles(l Llama) (cos, sin string) {
	positions := b.node("Cast", []string{b.node("Unsqueeze", []string{"position_ids", b.ints(-1)})}, integer("to", 1))
	positions = b.steps(positions, l.Crowd.Angles)
	half := b.node("Mul", []string{positions, b.frequencies(l.Theta, l.HeadSize)})
	angle := b.node("Unsqueeze", []string{b.node("Concat", []string{half, half}, integer("axis", -1)), b.ints(1)})
	return b.node("Cos", []string{angle}), b.node("Sin", []string{angle})
}

// mask is 0 where a token may look and the lowest number elsewhere, [batch, 1,
// length, total].
func (b *builder) mask(l Llama) string {
	length := b.node("Gather", []string{b.node("Shape", []string{"input_ids"}), b.scalar(1)})
	total := b.node("Gather", []string{b.node("Shape", []string{"attention_mask"}), b.scalar(1)})
	past := b.node("Sub", []string{total, length})
	rows := b.node("Unsqueeze", []string{b.node("Range", []string{past, total, b.scalar(1)}), b.ints(-1)})
	columns := b.node("Unsqueeze", []string{b.node("Range", []string{b.scalar(0), total, b.scalar(1)}), b.ints(0)})
	seen := b.node("LessOrEqual", []string{columns, rows})
	real := b.node("Unsqueeze", []string{b.node("Cast", []string{"attention_mask"}, integer("to", 9)), b.ints(1, 2)})
	real = b.products(real, l.Crowd.MaskProducts)
	return b.node("Where", []string{b.node("And", []string{real, seen}), b.float(0), b.float(-3.4028234663852886e38)})
}

func (b *builder) attention(l Llama, name, x, cos, sin, mask string, layer int64) string {
	hidden := l.Heads * l.HeadSize
	heads := func(kind string, n int64) string {
		y := b.product(x, name+"."+kind, hidden, n*l.HeadSize)
		y = b.node("Reshape", []string{y, b.ints(0, 0, n, l.HeadSize)})
		return b.node("Transpose", []string{y}, integers("perm", 0, 2, 1, 3))
	}
	query := b.rotated(heads("q", l.Heads), cos, sin, l.HeadSize)
	key := b.cached(fmt.Sprintf("%d.key", layer), b.rotated(heads("k", l.KVHeads), cos, sin, l.HeadSize), l)
	value := b.cached(fmt.Sprintf("%d.value", layer), heads("v", l.KVHeads), l)
	key, value = b.repeated(key, l), b.repeated(value, l)
	scores := b.node("MatMul", []string{query, b.node("Transpose", []string{key}, integers("perm", 0, 1, 3, 2))})
	scores = b.node("Mul", []string{scores, b.float(rootInverse(l.HeadSize))})
	weights := b.node("Softmax", []string{b.node("Add", []string{scores, mask})}, integer("axis", -1))
	weights = b.softmaxes(weights, l.Crowd.Probabilities)
	out := b.node("Transpose", []string{b.node("MatMul", []string{weights, value})}, integers("perm", 0, 2, 1, 3))
	return b.product(b.node("Reshape", []string{out, b.ints(0, 0, hidden)}), name+".o", hidden, hidden)
}

// rotated is x · cos + (the second half of x negated before the first) · sin.
func (b *builder) rotated(x, cos, sin string, size int64) string {
	first := b.node("Slice", []string{x, b.ints(0), b.ints(size / 2), b.ints(-1)})
	second := b.node("Slice", []string{x, b.ints(size / 2), b.ints(size), b.ints(-1)})
	rotated := b.node("Concat", []string{b.node("Neg", []string{second}), first}, integer("axis", -1))
	return b.node("Add", []string{b.node("Mul", []string{x, cos}), b.node("Mul", []string{rotated, sin})})
}

// cached appends to one cache of the model.
func (b *builder) cached(name, x string, l Llama) string {
	past, present := "past_key_values."+name, "present."+name
	b.input(past, onnxpb.TensorProto_FLOAT, "batch", l.KVHeads, "past", l.HeadSize)
	b.named("Concat", []string{past, x}, present, integer("axis", 2))
	b.output(present, "batch", l.KVHeads, "total", l.HeadSize)
	return present
}

// repeated gives each query head its key or value head.
func (b *builder) repeated(x string, l Llama) string {
	x = b.node("Expand", []string{b.node("Unsqueeze", []string{x, b.ints(2)}), b.ints(1, 1, l.Heads/l.KVHeads, 1, 1)})
	return b.node("Reshape", []string{x, b.ints(0, l.Heads, -1, l.HeadSize)})
}

func (b *builder) norm(x, name string, size int64) string {
	mean := b.node("ReduceMean", []string{b.node("Mul", []string{x, x}), b.ints(-1)}, integer("keepdims", 1))
	root := b.node("Sqrt", []string{b.node("Add", []string{mean, b.float(1e-5)})})
	return b.node("Mul", []string{b.node("Div", []string{x, root}), b.weight(name, size)})
}

func (b *builder) product(x, name string, in, out int64) string {
	return b.node("MatMul", []string{x, b.weight(name, in, out)})
}
