package target_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/validate"
)

// scalesOf are scales that the caches of a model need on the golden's tokens: one for a cache, or with
// channels one for each channel.
func scalesOf(t *testing.T, path string, channels bool) map[int]rewrite.CacheScales {
	t.Helper()
	d := kit.Open(t, path)
	g := kit.ReadGolden(t, "llama", "plain", false)
	s := g.Sequence
	_, cache, err := d.Run(context.Background(), decoder.Step{Batch: s.Batch, Length: s.Length, IDs: s.IDs, Mask: s.Mask, Positions: s.Positions})
	if err != nil {
		t.Fatal(err)
	}
	list := map[int]rewrite.CacheScales{}
	for i, c := range cache {
		scales := make([]float32, 1)
		heads, size := int(c.Dims[1]), int(c.Dims[3])
		if channels {
			scales = make([]float32, heads*size)
		}
		for at, x := range c.Values() {
			channel := at/(size*int(c.Dims[2]))%heads*size + at%size
			scales[channel%len(scales)] = max(scales[channel%len(scales)], float32(math.Abs(x)/127))
		}
		of := list[i/2]
		if i%2 == 0 {
			of.Key = scales
		} else {
			of.Value = scales
		}
		list[i/2] = of
	}
	return list
}

// With fixed scales GroupQueryAttention computes what the original computes where all that is read of its
// caches is rounded with these scales.
func TestTargetContribScales(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, c := range testsample.Of(t, []struct {
		export   string
		capacity int64
		channels bool
	}{
		{"llama__optimum", 0, false},
		{"llama__optimum", 64, true},
		{"llama__dynamo18-fp16", 0, false},
		{"llama__dynamo23", 0, true},
		{"qwen3__optimum", 64, false},
		{"gemma3_text__dynamo18", 0, false}, // some layers with a window
		{"llama__dynamo18", 64, false},
	}, 3) {
		original := kit.Model(c.export)
		opts := rewrite.Options{Target: rewrite.Contrib, Context: rope.Context{Length: 64}, Cache: rewrite.Cache{Capacity: c.capacity, Type: "int8", Scales: scalesOf(t, original, c.channels)}}
		path, report := kit.Patch(t, original, opts)
		standardAlone(t, path)
		for _, w := range report.Record.AddedInputs {
			if strings.HasSuffix(w, "_scale") {
				t.Errorf("%s: it has the input %s", c.export, w)
			}
		}
		held := map[string][]float32{}
		for _, s := range rewrite.ReadScaledCaches(kit.OpenModel(t, path)) {
			held[s.Key], held[s.Value] = s.Scales.Key, s.Scales.Value
		}
		d, err := decoder.Open(context.Background(), kit.Local(t), original, decoder.Options{Held: held})
		if err != nil {
			t.Errorf("%s: %v", c.export, err)
			continue
		}
		t.Cleanup(func() { d.Close() })
		g := kit.ReadGolden(t, "llama", "plain", false)
		for _, way := range [][]int64{{48}, kit.ThenDecode} {
			got, rounded, exact := kit.Chunked(t, kit.OpenPlainly(t, path), g.Sequence, way), kit.Chunked(t, d, g.Sequence, way), kit.Chunked(t, kit.Open(t, original), g.Sequence, way)
			off, cost := kit.Largest(got, rounded), kit.Largest(rounded, exact)
			if !(off <= cost/8) && !strings.HasSuffix(c.export, "-fp16") { // which rounds more itself, as validate knows; a number halfway between two steps may be rounded to either
				t.Errorf("%s, capacity %d, in %v: off by %.2g, where rounding the caches makes %.2g", c.export, c.capacity, way, off, cost)
			}
		}
		r, err := validate.Run(context.Background(), original, path, validate.Options{Length: 48})
		if err != nil {
			t.Errorf("%s: validate: %v", c.export, err)
		} else if r.Verdict != validate.Same || r.CacheType != "int8" || r.Cases[0].Cost == nil || !(r.Cases[0].Cost.KL > 0) {
			t.Errorf("%s: validate says %+v", c.export, r)
		}
	}
}

// Scales that are missing, or do not fit, are refused with a sentence.
func TestTargetContribScalesRefuses(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	one := rewrite.CacheScales{Key: []float32{0.1}, Value: []float32{0.1}}
	both := map[int]rewrite.CacheScales{0: one, 1: one}
	for _, c := range []struct {
		export string
		target rewrite.Target
		cache  rewrite.Cache
		want   string
	}{
		{"llama__optimum", rewrite.Contrib, rewrite.Cache{Type: "int8"}, "needs fixed scales, because GroupQueryAttention makes none"},
		{"llama__optimum", rewrite.Contrib, rewrite.Cache{Type: "float16", Scales: both}, "--kv-scales is for --target contrib with caches of int8"},
		{"llama__optimum", rewrite.Contrib, rewrite.Cache{Scales: both}, "--kv-scales is for --target contrib with caches of int8"},
		{"llama__optimum", rewrite.Ops, rewrite.Cache{Type: "int8", Scales: both}, "--kv-scales is for --target contrib with caches of int8"},
		{"llama__optimum", rewrite.Contrib, rewrite.Cache{Type: "float16"}, "its caches of few bits are int8 with fixed scales"},
		{"llama__optimum", rewrite.Contrib, rewrite.Cache{Type: "int8", Scales: map[int]rewrite.CacheScales{0: one}}, "layer 1: there are no scales for its cache"},
		{"llama__optimum", rewrite.Contrib, rewrite.Cache{Type: "int8", Scales: map[int]rewrite.CacheScales{0: one, 1: one, 2: one}}, "there are scales for layer 2, and the model has the layers 0 to 1"},
		{"llama__optimum", rewrite.Contrib, rewrite.Cache{Type: "int8", Scales: map[int]rewrite.CacheScales{0: one, 1: {Key: make([]float32, 5), Value: one.Value}}}, "layer 1: the scales of its cache: its key has 5 scales: expected one, or 32 (2 kv heads of 16 channels)"},
		{"llama__optimum", rewrite.Contrib, rewrite.Cache{Type: "int8", Scales: map[int]rewrite.CacheScales{0: one, 1: {Key: one.Key, Value: []float32{0}}}}, "its value has the scale 0: expected a number above 0"},
		{"llama__genai-fp32", rewrite.Contrib, rewrite.Cache{Type: "int8", Scales: both}, "its cache is GroupQueryAttention's, whose type cannot be changed"},
		{"llama__optimum", "contrib:onnxruntime=1.26", rewrite.Cache{Type: "int8", Scales: both}, "it has caches of int8 only from ONNX Runtime 1.27 on"},
		{"llama__dynamo18-fp16", "contrib:onnxruntime=1.28", rewrite.Cache{Type: "int8", Scales: both}, "it has caches of int8 for a model in 16 bits only from ONNX Runtime 1.29 on"},
	} {
		_, err := kit.Rewrite(context.Background(), kit.OpenModel(t, kit.Model(c.export)), rewrite.Options{Target: c.target, Context: rope.Context{Length: 64}, Cache: c.cache})
		if unfit := (*rewrite.EditError)(nil); !errors.As(err, &unfit) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v lacks %q", err, c.want)
		}
	}
}

// A cache of fixed capacity: rows of different length, each at its own place, and what would give wrong
// results without a word ends the run.
func TestTargetContribFixed(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	path, _ := kit.Patch(t, kit.Model("llama__optimum"), rewrite.Options{Target: rewrite.Contrib, Context: rope.Context{Length: 64}, Cache: rewrite.Cache{Capacity: 16}})
	d, original := kit.OpenPlainly(t, path), kit.Open(t, kit.Model("llama__optimum"))
	ids := [][]int64{{7, 8, 9, 10, 11, 12}, {40, 41, 42, 43}}
	call := decoder.Step{Batch: 2, Length: 5, IDs: []int64{7, 8, 9, 10, 11, 40, 41, 42, 0, 0}, Mask: []int64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, Positions: []int64{0, 1, 2, 3, 4, 0, 1, 2, 3, 4}, Pasts: []int64{0, 0}}
	_, cache, err := d.Run(context.Background(), call)
	if err != nil {
		t.Fatal(err)
	}
	next := decoder.Step{Batch: 2, Length: 1, IDs: []int64{12, 43}, Mask: []int64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, Positions: []int64{5, 3}, Pasts: []int64{5, 3}, Cache: cache}
	got, _, err := d.Run(context.Background(), next)
	if err != nil {
		t.Fatal(err)
	}
	for b, row := range ids {
		s := decoder.Sequence{Batch: 1, Length: int64(len(row)), IDs: row}
		for i := range row {
			s.Mask, s.Positions = append(s.Mask, 1), append(s.Positions, int64(i))
		}
		want := kit.Chunked(t, original, s, []int64{s.Length})
		if off := kit.Largest(got.Values()[b*128:(b+1)*128], want[len(want)-128:]); !(off <= 1e-4) {
			t.Errorf("row %d is off by %.2g", b, off)
		}
	}
	for want, change := range map[string]func(*decoder.Step){
		"the mask hides a token":                     func(s *decoder.Step) { s.Mask = append([]int64{0}, s.Mask[1:]...) },
		"a position is not the index of its token,":  func(s *decoder.Step) { s.Positions = []int64{5, 5} },
		"a cache of fixed capacity has no room for ": func(s *decoder.Step) { s.Pasts, s.Positions = []int64{5, 16}, []int64{5, 16} },
	} {
		wrong := next
		change(&wrong)
		if _, _, err := d.Run(context.Background(), wrong); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
}
