package capture

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// Options says how a model is run, and how one that is not patched is rewritten in memory.
type Options struct {
	// Rewrite has the libraries and the worker to run, measure and verify with, and methods where
	// what they make of the model is to be captured; the zero value runs in this process and
	// gives no method.
	Rewrite rewrite.Options
}

// Model is a loaded model that returns what its attention layers read.
type Model struct {
	Ops     []rewrite.Op   // the captured layers, in order
	Skipped []rewrite.Site // layers that are not captured, with the reason

	Vocabulary    int64 // tokens that the model knows; 0 where it does not tell
	Length        int64 // tokens of each call; 0 takes any number
	Capacity      int64 // tokens that its cache holds; 0 for one that grows, or none
	LengthTracked bool  // the cache has a length for each row, and padding stands on the right

	engine  engine.Engine
	decoder *decoder.Decoder
	taps    []tap // of Ops
}

// Close ends the model and what runs it.
func (m *Model) Close() error {
	return errors.Join(m.decoder.Close(), m.engine.Close())
}

// tap names the outputs that give what an op reads and gives; "" for what it does not have.
type tap struct {
	inputs []string // in the op's order
	output string
}

// integers are the op's inputs of integers; the others are numbers of its own type.
var integers = []int{positionIDs, attentionMask, cacheLength, documentIDs}

// Open loads a model. One without any op is rewritten in memory first; the file is not
// touched. The error says so where no layer can be captured. The caller closes the model.
func Open(ctx context.Context, path string, opts Options) (*Model, error) {
	r := opts.Rewrite
	eng, err := engine.Open(engine.Config{Runtime: r.Evaluation.Runtime, Library: r.Evaluation.Library}, r.Evaluation.Worker)
	if err != nil {
		return nil, err
	}
	c := &Model{engine: eng}
	if err := c.load(ctx, path, opts); err != nil {
		return nil, errors.Join(err, eng.Close())
	}
	return c, nil
}

func (c *Model) load(ctx context.Context, path string, opts Options) error {
	m, err := onnx.Open(path)
	if err != nil {
		return err
	}
	defer m.Close()
	if c.Ops, c.Skipped, err = rewrite.ReadOps(m); err != nil {
		r := opts.Rewrite
		r.AllowUnchanged, r.Output.NoFallback = true, true
		if _, err := rewrite.Rewrite(ctx, m, r); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if c.Ops, c.Skipped, err = rewrite.ReadOps(m); err != nil {
			return err
		}
	}
	if len(c.Ops) == 0 {
		return fmt.Errorf("%s: none of its %d attention layers can be captured: %s", path, len(c.Skipped), c.Skipped[0].Reason)
	}
	more := c.attach(m)
	if c.decoder, err = decoder.Open(ctx, c.engine, path, decoder.Options{Model: m, Outputs: more}); err != nil {
		return err
	}
	c.Vocabulary, c.Length, c.Capacity, c.LengthTracked = c.decoder.Vocabulary, c.decoder.Length, c.decoder.Capacity, c.decoder.LengthTracked
	return nil
}

// attach adds nodes that give out what the ops read and give, and returns their outputs.
// These are float32 and int64, whatever the model's types are: both hold them exactly.
func (c *Model) attach(m *onnx.Model) (outputs []*onnx.ValueInfo) {
	names := onnx.Names{}
	names.Note(m.Graph)
	given := map[string]string{} // layers share positions and masks
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
