package lm

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Options says how to run a model. The zero value is usual.
type Options struct {
	Threads    int    // of one operator; 0 leaves it to ONNX Runtime
	OpsLibrary string // librope_ops.so; empty searches for it, if the model needs it
}

// Decoder is a loaded model and the cache of one sequence.
// It must not be used by several goroutines at once.
type Decoder struct {
	session *ort.DynamicAdvancedSession
	inputs  []string
	outputs []string
	caches  []cache
	length  int64       // tokens in the cache
	past    []ort.Value // one per cache; nil when the cache is empty
	logits  ort.Value   // of the last call
}

// cache is one past input, float32 [batch, heads, past, size], and the present
// output that continues it.
type cache struct {
	past, present string
	heads, size   int64
}

const (
	pastPrefix    = "past_key_values."
	presentPrefix = "present."
)

// Open loads the model at path. The ONNX Runtime library must have been
// initialised (customop.InitRuntime).
func Open(path string, options Options) (_ *Decoder, err error) {
	model, err := onnx.Open(path)
	if err != nil {
		return nil, fmt.Errorf("load the model: %w", err)
	}
	defer model.Close()
	d := &Decoder{}
	if err := d.signature(model.Graph, filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	so, err := ort.NewSessionOptions()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, so.Destroy()) }()
	if options.Threads > 0 {
		if err := so.SetIntraOpNumThreads(options.Threads); err != nil {
			return nil, err
		}
	}
	if err := registerOps(so, model, path, options.OpsLibrary); err != nil {
		return nil, err
	}
	if d.session, err = ort.NewDynamicAdvancedSession(path, d.inputs, d.outputs, so); err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	return d, nil
}

// signature finds inputs, outputs and caches by their names. A size that the
// model leaves open, as ONNX Runtime GenAI's builder does, is in config.json.
func (d *Decoder) signature(g *onnx.Graph, folder string) error {
	for _, out := range g.Outputs {
		d.outputs = append(d.outputs, out.Name)
	}
	for _, in := range g.Inputs {
		d.inputs = append(d.inputs, in.Name)
		switch {
		case slices.Contains([]string{"input_ids", "attention_mask", "position_ids"}, in.Name):
			if in.Type != onnx.Int64 {
				return fmt.Errorf("input %s has element type %v, this example feeds int64", in.Name, in.Type)
			}
		case strings.HasPrefix(in.Name, pastPrefix):
			c := cache{past: in.Name, present: presentPrefix + strings.TrimPrefix(in.Name, pastPrefix)}
			if in.Type != onnx.Float || len(in.Shape) != 4 || !in.Shape[1].Known() {
				return fmt.Errorf("input %s is %v %v, want float32 [batch, heads, past, size] with known heads", in.Name, in.Type, in.Shape)
			}
			if !slices.Contains(d.outputs, c.present) {
				return fmt.Errorf("input %s has no output %s that continues it", c.past, c.present)
			}
			c.heads, c.size = in.Shape[1].Value, in.Shape[3].Value
			if !in.Shape[3].Known() {
				var err error
				if c.size, err = headSize(folder); err != nil {
					return fmt.Errorf("input %s leaves its last size open: %w", in.Name, err)
				}
			}
			d.caches = append(d.caches, c)
		default:
			return fmt.Errorf("input %s is none that this example knows (input_ids, attention_mask, position_ids, %sN.key|value)", in.Name, pastPrefix)
		}
	}
	if !slices.Contains(d.inputs, "input_ids") || !slices.Contains(d.outputs, "logits") {
		return errors.New("not a language model: it has no input input_ids or no output logits")
	}
	if len(d.caches) == 0 {
		return errors.New("it was exported without a key-value cache; export it with one (for Optimum: task text-generation-with-past)")
	}
	return nil
}

// headSize reads the size of a head from the model's config.json.
func headSize(folder string) (int64, error) {
	b, err := os.ReadFile(filepath.Join(folder, "config.json"))
	if err != nil {
		return 0, err
	}
	var config struct {
		Head   int64 `json:"head_dim"`
		Hidden int64 `json:"hidden_size"`
		Heads  int64 `json:"num_attention_heads"`
	}
	if err := json.Unmarshal(b, &config); err != nil {
		return 0, fmt.Errorf("%s: %w", filepath.Join(folder, "config.json"), err)
	}
	if config.Head == 0 && config.Heads > 0 {
		config.Head = config.Hidden / config.Heads
	}
	if config.Head <= 0 {
		return 0, fmt.Errorf("%s gives neither head_dim nor hidden_size and num_attention_heads", filepath.Join(folder, "config.json"))
	}
	return config.Head, nil
}

// Length is the number of tokens that the cache holds.
func (d *Decoder) Length() int { return int(d.length) }

// Logits are the scores of the next token after each token of a call. They
// stand in ONNX Runtime's memory and are valid until the next call of Forward,
// Reset or Close: at 4,096 tokens they can be 800 MB, too much to copy unasked.
type Logits struct {
	Data       []float32 // [tokens, vocabulary]
	Vocabulary int
}

// Last is the row after the last token.
func (l Logits) Last() []float32 { return l.Data[len(l.Data)-l.Vocabulary:] }

// Forward runs the model on further tokens of the sequence and keeps their
// keys and values. After an error the cache is as it was before the call.
func (d *Decoder) Forward(tokens []int64) (_ Logits, err error) {
	if len(tokens) == 0 {
		return Logits{}, errors.New("no tokens to run the model on")
	}
	inputs, release, err := d.feed(tokens)
	defer func() { err = errors.Join(err, release()) }()
	if err != nil {
		return Logits{}, err
	}
	outputs := make([]ort.Value, len(d.outputs))
	if err := d.session.Run(inputs, outputs); err != nil {
		return Logits{}, errors.Join(fmt.Errorf("run the model on %d tokens after %d: %w", len(tokens), d.length, err), destroy(outputs))
	}
	at := slices.Index(d.outputs, "logits")
	tensor, ok := outputs[at].(*ort.Tensor[float32])
	if !ok || len(tensor.GetShape()) != 3 {
		return Logits{}, errors.Join(fmt.Errorf("output logits is %T %v, want float32 [batch, tokens, vocabulary]", outputs[at], outputs[at].GetShape()), destroy(outputs))
	}
	outputs[at] = nil
	present := make([]ort.Value, len(d.caches))
	for i, c := range d.caches {
		p := slices.Index(d.outputs, c.present)
		present[i], outputs[p] = outputs[p], nil
	}
	old := append(d.past, d.logits)
	d.past, d.logits, d.length = present, tensor, d.length+int64(len(tokens))
	return Logits{Data: tensor.GetData(), Vocabulary: int(tensor.GetShape()[2])}, errors.Join(destroy(outputs), destroy(old))
}

// feed makes the inputs of a call; release frees those that are not the cache.
func (d *Decoder) feed(tokens []int64) (inputs []ort.Value, release func() error, err error) {
	var own []ort.Value
	release = func() error { return destroy(own) }
	n := int64(len(tokens))
	for _, name := range d.inputs {
		var v ort.Value
		switch name {
		case "input_ids":
			v, err = ort.NewTensor(ort.NewShape(1, n), tokens)
		case "attention_mask":
			v, err = ort.NewTensor(ort.NewShape(1, d.length+n), slices.Repeat([]int64{1}, int(d.length+n)))
		case "position_ids":
			positions := make([]int64, n)
			for i := range positions {
				positions[i] = d.length + int64(i)
			}
			v, err = ort.NewTensor(ort.NewShape(1, n), positions)
		default:
			i := slices.IndexFunc(d.caches, func(c cache) bool { return c.past == name })
			if d.past != nil {
				inputs = append(inputs, d.past[i])
				continue
			}
			v, err = ort.NewEmptyTensor[float32](ort.NewShape(1, d.caches[i].heads, 0, d.caches[i].size))
		}
		if err != nil {
			return nil, release, fmt.Errorf("input %s: %w", name, err)
		}
		own, inputs = append(own, v), append(inputs, v)
	}
	return inputs, release, nil
}

// Reset forgets the sequence.
func (d *Decoder) Reset() error {
	old := append(d.past, d.logits)
	d.past, d.logits, d.length = nil, nil, 0
	return destroy(old)
}

// Close frees the cache and the model.
func (d *Decoder) Close() error {
	return errors.Join(d.Reset(), d.session.Destroy())
}

// destroy frees the values that are not nil.
func destroy(values []ort.Value) error {
	var errs []error
	for _, v := range values {
		if v != nil {
			errs = append(errs, v.Destroy())
		}
	}
	return errors.Join(errs...)
}

// Argmax is the index of the largest score, the first of equal ones.
func Argmax(scores []float32) int64 {
	best := 0
	for i, s := range scores {
		if s > scores[best] {
			best = i
		}
	}
	return int64(best)
}
