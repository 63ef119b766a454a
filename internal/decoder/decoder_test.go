package decoder_test

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

func TestMain(m *testing.M) {
	engine.ServeIfWorker()
	testruntime.Examples()
	os.Exit(m.Run())
}

const testdata = "../../testdata"

func model(name string) string { return filepath.Join(testdata, "models", name, "model.onnx") }

func worker(t *testing.T) engine.Engine {
	t.Helper()
	runtime, library := testruntime.Paths(t)
	eng, err := engine.NewWorker(engine.Config{Runtime: runtime, Library: library}, os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { eng.Close() })
	return eng
}

func open(t *testing.T, eng engine.Engine, path string) *decoder.Decoder {
	t.Helper()
	d, err := decoder.Open(context.Background(), eng, path, decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// padded is the goldens' batch of two rows, the second with padding on the left.
func padded(t *testing.T, architecture string) decoder.Sequence {
	t.Helper()
	f, err := npz.Open(filepath.Join(testdata, "goldens", architecture+".npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := decoder.Sequence{Batch: 2, Length: 48}
	for name, into := range map[string]*[]int64{"ids_pad": &s.IDs, "mask_pad": &s.Mask, "pos_pad": &s.Positions} {
		if *into, _, err = f.Int64(name); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// However a sequence is cut, the logits of its real tokens are the same.
func TestChunks(t *testing.T) {
	eng := worker(t)
	for _, name := range []string{"llama__optimum", "llama__dynamo18", "gpt_neox__dynamo18", "qwen3__optimum"} {
		d := open(t, eng, model(name))
		architecture, _, _ := strings.Cut(name, "__")
		s := padded(t, architecture)
		whole, err := d.Chunks(context.Background(), s, s.Length)
		if err != nil {
			t.Fatal(err)
		}
		for _, lengths := range [][]int64{{17, 31}, slices.Repeat([]int64{1}, 48), {40, 1, 1, 6}} {
			cut, err := d.Chunks(context.Background(), s, lengths...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := difference(s, whole, cut); !(diff <= 1e-4) {
				t.Errorf("%s in %v: off by %.2g", name, lengths, diff)
			}
		}
	}
}

// The comparison above is worth something: with a cache that is wiped, or that
// another sequence left, the same step gives other logits.
func TestCacheMatters(t *testing.T) {
	d := open(t, worker(t), model("llama__optimum"))
	s := padded(t, "llama")
	ctx := context.Background()
	step := func(s decoder.Sequence, first, last int64, cache decoder.Cache) decoder.Step {
		step := decoder.Step{Batch: s.Batch, Length: last - first, Cache: cache}
		for b := range s.Batch {
			row := b * s.Length
			step.IDs = append(step.IDs, s.IDs[row+first:row+last]...)
			step.Positions = append(step.Positions, s.Positions[row+first:row+last]...)
			step.Mask = append(step.Mask, s.Mask[row:row+last]...)
		}
		return step
	}
	run := func(s decoder.Step) (engine.Tensor, decoder.Cache) {
		t.Helper()
		logits, cache, err := d.Run(ctx, s)
		if err != nil {
			t.Fatal(err)
		}
		return logits, cache
	}
	_, cache := run(step(s, 0, 47, nil))
	want, next := run(step(s, 47, 48, cache))
	if len(next) != 4 || !slices.Equal(next[0].Dims, []int64{2, 2, 48, 16}) {
		t.Errorf("the cache has %d tensors, the first %v", len(next), next[0].Dims)
	}

	wiped := slices.Clone(cache)
	for i := range wiped {
		wiped[i].Data = make([]byte, len(cache[i].Data))
	}
	other := s
	other.IDs = slices.Clone(s.IDs)
	slices.Reverse(other.IDs)
	_, foreign := run(step(other, 0, 47, nil))
	exchanged := decoder.Cache{cache[1], cache[0], cache[3], cache[2]} // values for keys
	for name, wrong := range map[string]decoder.Cache{"wiped": wiped, "foreign": foreign, "exchanged": exchanged} {
		got, _ := run(step(s, 47, 48, wrong))
		largest := 0.0
		for i, x := range got.Values() {
			largest = max(largest, math.Abs(x-want.Values()[i]))
		}
		if !(largest > 0.1) {
			t.Errorf("with a cache that is %s the logits move by %.2g only", name, largest)
		}
	}
}

// Every present output comes back as the past input of its place, the first
// time an empty one.
func TestFeeds(t *testing.T) {
	fake := &fakeSession{}
	d := open(t, fake, model("llama__optimum"))
	if !d.Cached() || d.Vocabulary != 128 {
		t.Errorf("cached %v, vocabulary %d", d.Cached(), d.Vocabulary)
	}
	s := decoder.Sequence{Batch: 1, Length: 5, IDs: []int64{1, 2, 3, 4, 5}, Mask: []int64{0, 1, 1, 1, 1}, Positions: []int64{1, 0, 1, 2, 3}}
	if _, err := d.Chunks(context.Background(), s, 3, 2); err != nil {
		t.Fatal(err)
	}
	if len(fake.feeds) != 2 {
		t.Fatalf("%d calls", len(fake.feeds))
	}
	for call, want := range []map[string][]float64{
		{"input_ids": {1, 2, 3}, "attention_mask": {0, 1, 1}, "position_ids": {1, 0, 1}},
		{"input_ids": {4, 5}, "attention_mask": {0, 1, 1, 1, 1}, "position_ids": {2, 3}},
	} {
		for name, values := range want {
			if got := fake.feeds[call][name].Values(); !slices.Equal(got, values) {
				t.Errorf("call %d: %s = %v, want %v", call, name, got, values)
			}
		}
	}
	for _, name := range []string{"0.key", "0.value", "1.key", "1.value"} {
		if empty := fake.feeds[0]["past_key_values."+name]; !slices.Equal(empty.Dims, []int64{1, 2, 0, 16}) || len(empty.Data) > 0 {
			t.Errorf("first past %s is %v", name, empty.Dims)
		}
		if got := fake.feeds[1]["past_key_values."+name]; !bytes.Equal(got.Data, []byte("present."+name)) {
			t.Errorf("second past %s is %q", name, got.Data)
		}
	}
}

// fakeSession is an engine whose outputs contain their names.
type fakeSession struct {
	outputs []string
	feeds   []map[string]engine.Tensor
}

func (f *fakeSession) Load(_ context.Context, m engine.Model) (engine.Session, error) {
	f.outputs = m.Outputs
	return f, nil
}

func (f *fakeSession) Close() error { return nil }

func (f *fakeSession) Run(_ context.Context, feeds map[string]engine.Tensor) (map[string]engine.Tensor, error) {
	f.feeds = append(f.feeds, feeds)
	out := map[string]engine.Tensor{}
	for _, name := range f.outputs {
		out[name] = engine.Tensor{Type: onnx.Uint8, Data: []byte(name)}
	}
	length := feeds["input_ids"].Dims[1]
	out["logits"] = engine.Float32s(make([]float32, length*2), 1, length, 2)
	return out, nil
}

func TestOpenRefuses(t *testing.T) {
	for want, change := range map[string]func(*onnx.Graph){
		`the input "pixel_values" cannot be fed`: func(g *onnx.Graph) {
			g.AddInput(onnx.NewValueInfo("pixel_values", onnx.Float, onnx.Dim{Value: 1}, onnx.Dim{Value: 3}))
		},
		"as many cache outputs as cache inputs": func(g *onnx.Graph) { g.RemoveOutput("present.1.value") },
		"one output of logits":                  func(g *onnx.Graph) { g.RemoveOutput("logits") },
	} {
		m, err := onnx.Open(model("llama__optimum"))
		if err != nil {
			t.Fatal(err)
		}
		change(m.Graph)
		path := filepath.Join(t.TempDir(), "model.onnx")
		if err := m.Save(path, onnx.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
		m.Close()
		if _, err := decoder.Open(context.Background(), &fakeSession{}, path, decoder.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// difference is the largest between logits of tokens that are no padding.
func difference(s decoder.Sequence, a, b []float64) float64 {
	width := len(a) / len(s.Mask)
	largest := 0.0
	for i := range a {
		if s.Mask[i/width] != 0 {
			largest = max(largest, math.Abs(a[i]-b[i]))
		}
	}
	return largest
}
