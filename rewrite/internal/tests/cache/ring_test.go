package cache_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/validate"
)

// ringCase is a model, and what gives its layers windows.
type ringCase struct {
	model string
	edits []rope.Spec
	raw   bool
	rows  []int64 // of the caches of each layer
}

func ringCases(t *testing.T) []ringCase {
	mask := func(text string) []rope.Spec { return []rope.Spec{kit.Spec(t, rope.MaskAxis, text)} }
	return []ringCase{
		{model: "gemma3_text__dynamo18", rows: []int64{8, 60}},
		{model: "gpt_oss__dynamo18-eager", rows: []int64{8, 60}},
		{model: "mistral__dynamo18-eager", rows: []int64{8, 8}},
		{model: "llama__optimum", edits: mask("sliding-window:window=5"), rows: []int64{5, 5}},
		{model: "llama__dynamo18", edits: mask("first-keys:window=7,count=3"), rows: []int64{10, 10}},
		{model: "llama__dynamo18", edits: mask("first-keys:window=7,count=3,positions=cache"), rows: []int64{10, 10}},
		{model: "qwen3__dynamo23", edits: mask("first-keys:window=7,count=3,positions=cache"), raw: true, rows: []int64{10, 10}},
		{model: "mpt__dynamo18", edits: mask("sliding-window:window=9"), rows: []int64{9, 9}},
	}
}

// A text whose caches are rings gives the logits that it gives with caches that hold all of it: in one call and in
// several, by the op library and by the fallback, with caches of few bits too.
func TestRings(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, c := range testsample.Of(t, ringCases(t), 4) {
		for _, typ := range testsample.Of(t, []string{"", "int8"}, 1) {
			t.Run(c.model+" "+typ, func(t *testing.T) {
				s := paddedBatch(30, 0, 0)
				for i := range s.IDs {
					s.IDs[i] %= 32 // the vocabulary of the smallest
				}
				options := rewrite.Options{Edits: c.edits, Cache: rewrite.Cache{Raw: c.raw, Type: typ}}
				growing, _ := kit.Patch(t, kit.Model(c.model), options)
				options.Cache.Type = ""
				exact, _ := kit.Patch(t, kit.Model(c.model), options)
				options.Cache.Type, options.Cache.Capacity, options.Cache.Ring = typ, 60, true
				ring, report := kit.Patch(t, kit.Model(c.model), options)
				if report.Fallback.Reason != "" {
					t.Fatal(report.Fallback.Reason)
				}
				if rows := rowsOf(t, ring); !slices.Equal(rows, c.rows) {
					t.Errorf("the caches have %v rows, want %v", rows, c.rows)
				}
				for way, chunks := range map[string][]int64{"prefill": {30}, "chunks": {13, 14, 3}, "token by token": slices.Repeat([]int64{1}, 30)} {
					want := kit.Chunked(t, kit.Open(t, growing), s, chunks)
					cost := kit.Largest(want, kit.Chunked(t, kit.Open(t, exact), s, chunks))
					for what, d := range map[string]*decoder.Decoder{"op": kit.Open(t, ring), "fallback": kit.OpenPlainly(t, ring)} {
						got := kit.Chunked(t, d, s, chunks)
						if off := kit.Largest(got, want); !(off <= 2e-4) && !(off <= cost/8) { // a number between two integers may become either
							t.Errorf("%s, %s: off by %.2g from a growing cache", what, way, off)
						}
					}
				}
			})
		}
	}
}

// rowsOf are the rows of each layer's cache of keys.
func rowsOf(t *testing.T, path string) (rows []int64) {
	t.Helper()
	d := kit.Open(t, path)
	for _, c := range d.Caches {
		if strings.HasSuffix(c.Past, ".key") {
			rows = append(rows, c.Rows)
		}
	}
	return rows
}

// A model with rings is confirmed, keeps them when it is rewritten again, and gets its growing caches back.
func TestRingAgain(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	ring := ""
	for _, mask := range []string{"first-keys:window=9,count=3", "sliding-window:window=9"} {
		window := []rope.Spec{kit.Spec(t, rope.MaskAxis, mask)}
		ring, _ = kit.Patch(t, kit.Model("llama__dynamo18"), rewrite.Options{Edits: window, Cache: rewrite.Cache{Capacity: 200, Ring: true}})
		v, err := validate.Run(context.Background(), kit.Model("llama__dynamo18"), ring, validate.Options{Length: 48})
		if err != nil || v.Verdict != validate.AsClaimed {
			t.Errorf("%s: a model with rings is not confirmed: %v %+v", mask, err, v)
		}
	}
	back, _ := kit.Patch(t, ring, rewrite.Options{Earlier: rewrite.Earlier{Restore: true}})
	if rows := rowsOf(t, back); !slices.Equal(rows, []int64{0, 0}) {
		t.Errorf("restored, the caches have %v rows, want growing ones", rows)
	}
	narrower, _ := kit.Patch(t, ring, rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.MaskAxis, "sliding-window:window=6")}, Earlier: rewrite.Earlier{Carried: true}})
	if rows := rowsOf(t, narrower); !slices.Equal(rows, []int64{6, 6}) {
		t.Errorf("after another window the caches have %v rows, want 6", rows)
	}
}

// What needs the tokens that a ring forgets is refused, and so is a ring of nothing.
func TestRingRefused(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	firstKeys := []rope.Spec{kit.Spec(t, rope.MaskAxis, "first-keys:window=24,count=4")}
	for _, c := range []struct {
		model   string
		options rewrite.Options
		want    string
	}{
		{"llama__dynamo18", rewrite.Options{}, "no layer has a window"},
		{"mistral__dynamo18-eager", rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.PositionsAxis, "self-extend:group=4,window=4")}}, "its bands share positions"},
		{"llama__dynamo18", rewrite.Options{Edits: firstKeys, Cache: rewrite.Cache{Raw: true}}, "first keys would come nearer"},
		{"mistral__dynamo18-eager", rewrite.Options{Target: rewrite.PlainONNX}, "ring=true (--kv) needs the op"},
		{"mistral__dynamo18-eager", rewrite.Options{Target: rewrite.Contrib}, "ring=true (--kv) needs the op"},
		{"mpt__dynamo18", rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.MaskAxis, "first-keys:window=5")}}, "its first keys move away"},
	} {
		m, err := onnx.Open(kit.Model(c.model))
		if err != nil {
			t.Fatal(err)
		}
		c.options.Cache.Capacity, c.options.Cache.Ring = 60, true
		if _, err = kit.Rewrite(context.Background(), m, c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.model, err, c.want)
		}
		m.Close()
	}
}
