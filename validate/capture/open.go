package capture

import (
	"context"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// Options says how a model that is not patched is rewritten in memory.
type Options struct {
	// Rewrite has the libraries and the worker to measure and prove with, and methods where
	// what they make of the model is to be captured; the zero value gives no method.
	Rewrite rewrite.Options
}

// Model is a loaded model whose attentions give out what they read.
type Model struct {
	*decoder.Decoder
	Ops  []rewrite.Op   // the captured sites, in the order of the layers
	Kept []rewrite.Site // sites that are not captured, with the reason

	taps []tap // of Ops
}

// tap names the outputs that give what an op reads and gives; "" for what it does not have.
type tap struct {
	inputs []string // in the op's order
	output string
}

// integers are the op's inputs of integers; the others are numbers of its own type.
var integers = []int{positionIDs, attentionMask, cacheLength, documentIDs}

// Open loads a model. One without any op is rewritten in memory first; the file is not
// touched. The error says so where no attention can be captured.
func Open(ctx context.Context, eng engine.Engine, path string, opts Options) (*Model, error) {
	m, err := onnx.Open(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	c := &Model{}
	if c.Ops, c.Kept, err = rewrite.ReadOps(m); err != nil {
		r := opts.Rewrite
		r.AllowKept, r.NoDefinition = true, true
		if _, err := rewrite.Rewrite(ctx, m, r); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if c.Ops, c.Kept, err = rewrite.ReadOps(m); err != nil {
			return nil, err
		}
	}
	if len(c.Ops) == 0 {
		return nil, fmt.Errorf("%s: none of its %d attentions can be captured: %s", path, len(c.Kept), c.Kept[0].Reason)
	}
	more := c.attach(m)
	if c.Decoder, err = decoder.Open(ctx, eng, path, decoder.Options{Model: m, Outputs: more}); err != nil {
		return nil, err
	}
	return c, nil
}

// attach adds nodes that give out what the ops read and give, and returns their outputs.
// These are float32 and int64, whatever the model's types are: both hold them exactly.
func (c *Model) attach(m *onnx.Model) (outputs []*onnx.ValueInfo) {
	names := onnx.Names{}
	names.Note(m.Graph)
	given := map[string]string{} // sites share positions and masks
	give := func(name string, t onnx.DataType) string {
		if name == "" {
			return ""
		}
		if given[name] == "" {
			given[name] = names.Fresh("captured/" + name)
			m.Graph.Nodes = append(m.Graph.Nodes, onnx.NewNode("Cast", []string{name}, []string{given[name]}, onnx.IntAttr("to", int64(t))))
			outputs = append(outputs, &onnx.ValueInfo{Name: given[name], Type: t})
		}
		return given[name]
	}
	for _, op := range c.Ops {
		var t tap
		for i, name := range op.Node.Inputs {
			element := onnx.Float
			if slices.Contains(integers, i) {
				element = onnx.Int64
			}
			if i == totalLength { // cache_length and the shapes say it too
				name = ""
			}
			t.inputs = append(t.inputs, give(name, element))
		}
		t.output = give(op.Node.Outputs[0], onnx.Float)
		c.taps = append(c.taps, t)
	}
	return outputs
}
