package cache_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

var staticCaches = []string{"llama__ts17-static-cache", "llama__dynamo18-static-cache"}

// staticModel is a model with a cache of fixed size, loaded.
type staticModel struct {
	engine.Session
	rows  int64
	cache []engine.Tensor // [2, 1, rows, 8] keys and values
}

func loadStatic(t *testing.T, path string, rows int64) *staticModel {
	t.Helper()
	session, err := kit.Local(t).Load(context.Background(), engine.Model{Path: path, Library: true,
		Inputs: []string{"input_ids", "cache_position", "past_key", "past_value"}, Outputs: []string{"logits", "present_key", "present_value"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	s := &staticModel{Session: session, rows: rows}
	rng := rand.New(rand.NewPCG(1, 2)) // what stands in unused rows carries no meaning
	for range 2 {
		x := make([]float32, 2*rows*8)
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		s.cache = append(s.cache, engine.Float32s(x, 2, 1, rows, 8))
	}
	return s
}

// call runs the model on tokens [2, n] whose places are given, and keeps its cache.
func (s *staticModel) call(tokens []int64, places ...int64) ([]float64, error) {
	out, err := s.Run(context.Background(), map[string]engine.Tensor{"input_ids": engine.Int64s(tokens, 2, int64(len(tokens)/2)),
		"cache_position": engine.Int64s(places, int64(len(places))), "past_key": s.cache[0], "past_value": s.cache[1]})
	if err != nil {
		return nil, err
	}
	s.cache = []engine.Tensor{out["present_key"], out["present_value"]}
	return out["logits"].Values(), nil
}

func consecutive(first, count int64) (list []int64) {
	for i := range count {
		list = append(list, first+i)
	}
	return list
}

// columnsOf returns the columns [from, to) of rows of some width.
func columnsOf(list []int64, width, from, to int64) (out []int64) {
	for row := range slices.Chunk(list, int(width)) {
		out = append(out, row[from:to]...)
	}
	return out
}

// TestStaticCache: keys and values that are scattered into buffers of fixed size are lifted
// whole, with the model's own input as the op's number of cached tokens. What the patched
// model gives, call by call, is what transformers does without a cache.
func TestStaticCache(t *testing.T) {
	testruntime.Require(t)
	yarn := kit.Spec(t, rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=16")
	for _, name := range staticCaches {
		f, err := npz.Open(filepath.Join(kit.Testdata, "models", name, "golden.npz"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		ids, _, err := f.Int64("ids")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name, golden string
			opts         []rewrite.Options // one after the other
		}{
			{"no method", "plain", []rewrite.Options{{}}},
			{"by the definition", "plain", []rewrite.Options{{Target: rewrite.PlainONNX, Cache: rewrite.Cache{Raw: true}}}},
			{"raw keys", "plain", []rewrite.Options{{Cache: rewrite.Cache{Raw: true}}}},
			{"scaled", "yarn4", []rewrite.Options{{Edits: []rope.Spec{yarn}}}},
			{"scaled in the model's own nodes", "yarn4", []rewrite.Options{{Target: rewrite.PlainONNX, Edits: []rope.Spec{yarn}}}},
			{"rewritten again", "yarn4", []rewrite.Options{{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=2")}}, {Edits: []rope.Spec{yarn}}}},
			{"restored", "plain", []rewrite.Options{{Edits: []rope.Spec{yarn}}, {Earlier: rewrite.Earlier{Restore: true}}}},
		} {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				path := kit.Model(name)
				for _, opts := range c.opts {
					m := kit.OpenModel(t, path)
					report, err := kit.Rewrite(context.Background(), m, opts)
					if err != nil {
						t.Fatal(err)
					}
					for _, s := range report.Sites {
						if s.Status != rewrite.Rewritten || s.Cache != "fixed" || s.RotationOnly {
							t.Errorf("layer %d is %s, its cache %s: %s", s.Layer, s.Status, s.Cache, s.Reason)
						}
					}
					path = filepath.Join(t.TempDir(), "model.onnx")
					if err := m.Save(path, onnx.SaveOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				want, shape, err := f.Float32(c.golden)
				if err != nil {
					t.Fatal(err)
				}
				length, width := int64(shape[1]), int64(shape[2])
				s, start := loadStatic(t, path, 24), int64(0)
				for _, n := range testsample.Of(t, []int64{5, 3, 1}, 3) {
					got, err := s.call(columnsOf(ids, length, start, start+n), consecutive(start, n)...)
					if err != nil {
						t.Fatal(err)
					}
					for i, x := range got {
						b, row := int64(i)/width/n, int64(i)/width%n
						if w := float64(want[(b*length+start+row)*width+int64(i)%width]); !(math.Abs(x-w) <= 1e-4) {
							t.Fatalf("%d tokens from %d: off by %.2g from transformers", n, start, math.Abs(x-w))
						}
					}
					start += n
				}
			})
		}
	}
}

// TestStaticCacheCapacity: a buffer of fixed size has it already.
func TestStaticCacheCapacity(t *testing.T) {
	testruntime.Require(t)
	for _, name := range staticCaches {
		_, err := kit.Rewrite(context.Background(), kit.OpenModel(t, kit.Model(name)), rewrite.Options{Cache: rewrite.Cache{Capacity: 32}})
		if err == nil || !strings.Contains(err.Error(), "its cache already has a fixed capacity") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStaticCacheLookalikes: models that write their caches in another way are kept with the
// reason, or give what they gave before.
func TestStaticCacheLookalikes(t *testing.T) {
	testruntime.Require(t)
	// places puts others in the place of those that a Scatter writes to; every dimension of
	// indices of a ScatterElements has them, the last one those of a ScatterND.
	places := func(p *patient, which int, change func(old string) string) {
		p.Into(p.slots()[which], 1, change)
	}
	for _, c := range testsample.Of(t, []struct {
		name   string
		change func(p *patient)
		kept   string // what the reason says; "" is lifted
		open   string // the same of the model whose buffers have any number of rows, where it differs
		strict bool   // only calls whose places are consecutive run
	}{
		{name: "as it is", change: func(*patient) {}},
		{name: "keys one row later", kept: "after a call with 1 tokens that belong in the rows from 0 on, row 0 is not as expected",
			change: func(p *patient) {
				places(p, 0, func(old string) string { return p.Op("Add", old, p.Int(1)) })
			}},
		{name: "keys and values one row later", kept: "row 0 is not as expected",
			change: func(p *patient) {
				for i := range 2 {
					places(p, i, func(old string) string { return p.Op("Add", old, p.Int(1)) })
				}
			}},
		{name: "values one row earlier", kept: "is not as expected",
			change: func(p *patient) {
				places(p, 1, func(old string) string { return p.Op("Max", p.Op("Sub", old, p.Int(1)), p.Int(0)) })
			}},
		{name: "a ring", open: "belong in the rows from 100 on, row 4 is not as expected",
			change: func(p *patient) { // of as many rows as one of the models has: no call goes around it
				for i := range 2 {
					places(p, i, func(old string) string { return p.Op("Mod", old, p.Int(24)) })
				}
			}},
		{name: "a smaller ring", kept: "is not as expected",
			change: func(p *patient) {
				for i := range 2 {
					places(p, i, func(old string) string { return p.Op("Mod", old, p.Int(8)) })
				}
			}},
		{name: "along the channels", kept: "is not as expected",
			change: func(p *patient) {
				for _, n := range p.slots() {
					p.Into(n, 1, func(old string) string { return p.Op("Mod", old, p.Int(8)) })
					if n.OpType == "ScatterElements" {
						n.SetAttribute(onnx.IntAttr("axis", 3))
					}
				}
			}},
		{name: "always from the first row on", kept: "is not as expected",
			change: func(p *patient) {
				for i := range 2 {
					places(p, i, func(old string) string { return p.Op("Mul", old, p.Int(0)) })
				}
			}},
		{name: "another row at one place", kept: "token 13 is written to row",
			change: func(p *patient) {
				for i := range 2 {
					places(p, i, func(old string) string {
						return p.Op("Where", p.Op("Equal", old, p.Int(13)), p.Int(14), old)
					})
				}
			}},
		{name: "places told one by one", strict: true,
			change: func(p *patient) { p.toldOneByOne() }},
		{name: "added to what stands there", kept: "is not as expected",
			change: func(p *patient) {
				for _, n := range p.slots() {
					n.SetAttribute(onnx.StringAttr("reduction", "add"))
				}
			}},
		{name: "unused rows are visible", kept: "is visible",
			change: func(p *patient) {
				p.After(p.First("LessOrEqual").Outputs[0], func(old string) string { return p.Op("Or", old, p.Op("Not", old)) })
			}},
		{name: "a window", change: func(p *patient) {
			p.After(p.First("LessOrEqual").Outputs[0], func(old string) string {
				le := p.First("LessOrEqual")
				return p.Op("And", old, p.Op("Greater", le.Inputs[0], p.Op("Sub", le.Inputs[1], p.Int(4))))
			})
		}},
		{name: "a mask that begins one token late", kept: "its mask is not understood",
			change: func(p *patient) {
				p.Into(p.First("LessOrEqual"), 0, func(old string) string { return p.Op("Sub", old, p.Int(1)) })
			}},
	}, 5) {
		for _, name := range staticCaches {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				p := newPatient(t, name)
				c.change(p)
				original := p.Saved()
				m := kit.OpenModel(t, original)
				report, err := kit.Rewrite(context.Background(), m, rewrite.Options{AllowUnchanged: true})
				if err != nil {
					t.Fatal(err)
				}
				if name == staticCaches[1] && c.open != "" {
					c.kept = c.open
				}
				switch s := report.Sites[0]; {
				case c.kept == "" && s.Status != rewrite.Rewritten:
					t.Fatalf("it is unchanged: %s", s.Reason)
				case c.kept != "" && s.Status == rewrite.Rewritten:
					t.Fatalf("it is lifted: mask %s", s.Mask)
				case !strings.Contains(s.Reason, c.kept):
					t.Fatalf("it is unchanged for another reason than %q: %s", c.kept, s.Reason)
				case c.kept != "":
					t.Log(s.Reason)
					return
				}
				patched := filepath.Join(t.TempDir(), "patched.onnx")
				if err := m.Save(patched, onnx.SaveOptions{}); err != nil {
					t.Fatal(err)
				}
				compareStatic(t, original, patched, c.strict)
			})
		}
	}
}

// compareStatic runs two models call by call: a prefill, chunks, single tokens, a call that
// starts again in the middle, and places that are not consecutive.
func compareStatic(t *testing.T, original, patched string, strict bool) {
	t.Helper()
	a, b := loadStatic(t, original, 24), loadStatic(t, patched, 24)
	rng := rand.New(rand.NewPCG(3, 4))
	for _, places := range [][]int64{consecutive(0, 5), consecutive(5, 3), {8}, {9}, consecutive(4, 7), consecutive(11, 13), {23}, {6, 19, 2}} {
		tokens := make([]int64, 2*len(places))
		for i := range tokens {
			tokens[i] = rng.Int64N(32)
		}
		want, err := a.call(tokens, places...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := b.call(tokens, places...)
		if !slices.Equal(places, consecutive(places[0], int64(len(places)))) && strict {
			if err == nil || !strings.Contains(fmt.Sprint(err), "the places of new tokens are not consecutive") {
				t.Errorf("places %v: %v", places, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range got {
			if !(math.Abs(x-want[i]) <= 1e-4) {
				t.Fatalf("places %v: off by %.2g", places, math.Abs(x-want[i]))
			}
		}
	}
}

// slots returns the nodes that write keys and values into a model's buffers.
func (p *patient) slots() (list []*onnx.Node) {
	for _, n := range p.Graph.Nodes {
		if (n.OpType == "ScatterND" || n.OpType == "ScatterElements") && (n.Int("axis", 2) == 2) {
			list = append(list, n)
		}
	}
	return list
}

// toldOneByOne makes a model write each token to the place that the input has for it, as
// older exports do.
func (p *patient) toldOneByOne() {
	adds := map[string]bool{}
	for _, n := range p.slots() {
		adds[p.Up(n.Inputs[1], "Add").Outputs[0]] = true
	}
	for v := range adds {
		p.After(v, func(string) string { return p.Op("Identity", "cache_position") })
	}
}
