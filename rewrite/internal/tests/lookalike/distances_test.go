package lookalike_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/largemodel"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

const (
	bloom     = "bloom__dynamo18"
	mpt       = "mpt__dynamo18"
	t5Decoder = "t5_decoder__dynamo18"
	t5Encoder = "t5_encoder__dynamo18-nocache"
)

// distanceCase is an export with a bias by distance in which something is changed. It is rewritten with the bias
// that is says, or is no model that the op can have, for a reason that has some words.
type distanceCase struct {
	name, model string
	change      func(p *patient)
	is          func(layer int, a rope.Attention) error
	none        string // a part of the error
}

// weigh adds a value to the scores of all layers.
func (p *patient) weigh(value string) {
	p.Scores(func(old string) string { return p.Op("Add", old, value) })
}

// onlyAt is a number for scores where a condition holds, and 0 elsewhere.
func (p *patient) onlyAt(condition string, value float32) string {
	return p.Op("Where", condition, p.Float(value), p.Float(0))
}

// headed is a list of numbers for heads.
func (p *patient) headed(values ...float32) string {
	return p.Floats([]int64{1, int64(len(values)), 1, 1}, values...)
}

// far is the distance as a float, steps its size.
func (p *patient) far() string   { return p.Cast(p.distance(), onnx.Float) }
func (p *patient) steps() string { return p.Op("Abs", p.far()) }

// holesCounted replaces what the mask is summed up to by ones: padding is counted then.
func (p *patient) holesCounted() {
	n := p.First("CumSum")
	p.Into(n, 0, func(mask string) string {
		return p.Op("Add", p.Op("Mul", mask, p.Int(0)), p.Int(1))
	})
}

func is(want rope.Distance) func(int, rope.Attention) error {
	return func(_ int, a rope.Attention) error {
		d := a.Distance
		if a.Mask.Bias || !slices.Equal(d.Starts, want.Starts) || d.Shown != want.Shown || len(d.Slopes) != len(want.Slopes) {
			return fmt.Errorf("slopes %v, starts %v, shown %v; %+v was expected; the mask is %s", d.Slopes, d.Starts, d.Shown, want, a.Mask.String())
		}
		for h, slope := range want.Slopes {
			if err := near("a slope", d.Slopes[h], slope); err != nil {
				return err
			}
		}
		return nil
	}
}

var (
	bloomSlopes = []float64{0.25, 0.0625, 0.015625, 0.00390625}
	t5Starts    = []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 14, 16, 19, 21}
	t5Both      = []int64{-16, -15, -9, -6, -3, -2, -1, 0, 1, 2, 3, 4, 7, 10, 16}
)

// with returns a list with numbers inserted.
func with(list []int64, more ...int64) []int64 {
	list = append(slices.Clone(list), more...)
	slices.Sort(list)
	return list
}

func distanceCases() []distanceCase {
	const alibi, relative = "its positions are ALiBi", "its positions are relative biases"
	return []distanceCase{
		// What is the same to a softmax, or another bias that the op has.
		{name: "a constant of each row", model: bloom, is: is(rope.Distance{Slopes: bloomSlopes, Shown: true}),
			change: func(p *patient) { p.weigh(p.Op("Mul", p.queries(), p.Float(0.5))) }},
		{name: "twice the slopes, by index and by what is shown", model: bloom, none: alibi,
			change: func(p *patient) { p.weigh(p.Op("Mul", p.far(), p.Float(-0.25))) }},
		{name: "twice the slopes", model: mpt, is: is(rope.Distance{Slopes: []float64{0.3125, 0.25390625, 0.5}}),
			change: func(p *patient) { p.weigh(p.Op("Mul", p.far(), p.Float(-0.25))) }},
		{name: "holes counted", model: bloom, is: is(rope.Distance{Slopes: bloomSlopes}), change: (*patient).holesCounted},
		{name: "a head without a slope", model: mpt, is: is(rope.Distance{Slopes: []float64{0, 0.00390625, 0.25}}),
			change: func(p *patient) { p.weigh(p.Op("Mul", p.far(), p.headed(0.0625, 0, 0))) }},
		{name: "keys get nearer to what a head sees", model: mpt, is: is(rope.Distance{Slopes: []float64{-0.0625, 0.00390625, 0.25}}),
			change: func(p *patient) { p.weigh(p.Op("Mul", p.far(), p.headed(0.125, 0, 0))) }},
		{name: "a window beside slopes", model: bloom, is: func(layer int, a rope.Attention) error {
			if a.Mask.Window != 12 {
				return fmt.Errorf("the mask is %s", a.Mask.String())
			}
			return is(rope.Distance{Slopes: bloomSlopes, Shown: true})(layer, a)
		}, change: func(p *patient) { p.weigh(p.onlyAt(p.Op("Greater", p.distance(), p.Int(11)), -1e30)) }},
		{name: "linear up to a distance", model: mpt, is: is(rope.Distance{Starts: upTo(40)}), // a table then
			change: func(p *patient) {
				beyond := p.Op("Max", p.Op("Sub", p.far(), p.Float(40)), p.Float(0))
				p.weigh(p.Op("Mul", beyond, p.headed(0.0625, 0.00390625, 0.25)))
			}},
		{name: "one distance of one head in a table", model: mpt, is: is(rope.Distance{Starts: upTo(63)}),
			change: func(p *patient) {
				p.weigh(p.Op("Mul", p.onlyAt(p.Op("Equal", p.distance(), p.Int(20)), 1), p.headed(0, 0.01, 0)))
			}},
		{name: "another number far away", model: t5Decoder, is: is(rope.Distance{Starts: with(t5Starts, 100_000)}),
			change: func(p *patient) {
				p.weigh(p.Op("Mul", p.onlyAt(p.Op("Greater", p.distance(), p.Int(99_999)), 1), p.headed(0, 0, 0, 0.25)))
			}},
		{name: "one distance far away", model: t5Decoder, is: is(rope.Distance{Starts: with(t5Starts, 70_000, 70_001)}),
			change: func(p *patient) {
				p.weigh(p.Op("Mul", p.onlyAt(p.Op("Equal", p.distance(), p.Int(70_000)), 1), p.headed(0, 0.125, 0, 0)))
			}},
		{name: "an edge moved by one", model: t5Decoder, is: is(rope.Distance{Starts: with(t5Starts, 22)}), // in one head
			change: func(p *patient) {
				p.weigh(p.Op("Mul", p.onlyAt(p.Op("Equal", p.distance(), p.Int(21)), 1), p.headed(0.5, 0, 0, 0)))
			}},
		{name: "a later distance far away", model: t5Encoder, is: is(rope.Distance{Starts: with(t5Both[1:], -50_001, -50_000)}),
			change: func(p *patient) { p.weigh(p.onlyAt(p.Op("Less", p.distance(), p.Int(-50_000)), 0.125)) }},
		{name: "slopes to both sides beside buckets", model: t5Encoder, none: relative,
			change: func(p *patient) { p.weigh(p.Op("Mul", p.steps(), p.Float(-0.125))) }},
		{name: "slopes to both sides", model: t5Encoder, is: is(rope.Distance{Slopes: []float64{0.125, 0.25, 0, 0.5}}),
			change: func(p *patient) {
				p.without()
				p.weigh(p.Op("Mul", p.steps(), p.headed(-0.125, -0.25, 0, -0.5)))
			}},
		{name: "steep slopes", model: bloom, is: is(rope.Distance{Slopes: []float64{16, 4, 1, 0.25}, Shown: true}), change: func(p *patient) { p.slopesTimes(64) }},
		// Which bucket has a distance of 2^k follows from how float32 rounds its logarithm.
		{name: "edges by rounding", model: t5Encoder, is: is(rope.Distance{Starts: []int64{-128, -127, -90, -63, -45, -31, -22, -15, -11, 12, 16, 23, 32, 46, 64, 91, 128}}), // 8·16^(i/8)
			change: func(p *patient) {
				p.without()
				octaves := p.Op("Div", p.Op("Log", p.Op("Div", p.Op("Max", p.steps(), p.Float(8)), p.Float(8))), p.Float(2.772588722239781))
				bucket := p.Cast(p.Op("Min", p.Op("Mul", octaves, p.Float(8)), p.Float(8)), onnx.Int64)
				p.weigh(p.Op("Gather", p.Floats([]int64{9}, 0, 1, -1, 0.5, 2, -2, 0.25, 1.5, -0.5), bucket))
			}},
		{name: "slopes that outgrow float16", model: bloom + "-fp16", is: is(rope.Distance{Slopes: []float64{1, 0.25, 0.0625, 0.015625}, Shown: true}),
			change: func(p *patient) { p.slopesTimes(4) }},

		// What is no bias by distance.
		{name: "one distance of one head", model: bloom, none: alibi,
			change: func(p *patient) {
				p.weigh(p.Op("Mul", p.onlyAt(p.Op("Equal", p.distance(), p.Int(300)), 1), p.headed(0, 0, 0.01, 0)))
			}},
		{name: "one distance of one head with few tokens", model: bloom, none: relative,
			change: func(p *patient) {
				p.weigh(p.Op("Mul", p.onlyAt(p.Op("Equal", p.distance(), p.Int(2)), 1), p.headed(0, 0, 0, 0.0005)))
			}},
		{name: "linear up to a far distance", model: bloom, none: alibi,
			change: func(p *patient) {
				p.weigh(p.Op("Mul", p.Op("Max", p.Op("Sub", p.far(), p.Float(30_000)), p.Float(0)), p.Float(0.00390625)))
			}},
		{name: "squares", model: bloom, none: relative,
			change: func(p *patient) { p.weigh(p.Op("Mul", p.Op("Mul", p.far(), p.far()), p.Float(-1e-3))) }},
		{name: "by the query's position", model: mpt, none: alibi,
			change: func(p *patient) {
				late := p.Op("Greater", p.queries(), p.Float(40))
				p.weigh(p.Op("Mul", p.onlyAt(p.Op("And", late, p.Op("Equal", p.distance(), p.Int(1))), 1), p.headed(0, 0, 0.1)))
			}},
		{name: "by the key's position", model: t5Decoder, none: relative,
			change: func(p *patient) { p.weigh(p.onlyAt(p.Op("Equal", p.keys(), p.Int(30)), 0.25)) }},
		{name: "by the row of the batch", model: bloom, none: alibi,
			change: func(p *patient) { p.weigh(p.Op("Mul", p.Op("Mul", p.far(), p.Float(-0.01)), p.rows())) }},
		{name: "by how many tokens there are", model: bloom, none: "",
			change: func(p *patient) {
				total := p.Cast(p.Op("Add", p.Past(), p.Size("input_ids", 1)), onnx.Float)
				p.weigh(p.Op("Div", p.far(), total))
			}},
		{name: "rounded to bfloat16", model: t5Decoder, none: alibi, change: func(p *patient) { p.rounded(onnx.BFloat16) }},
		{name: "rounded to float16", model: t5Decoder, none: alibi, change: func(p *patient) { p.rounded(onnx.Float16) }},
		{name: "under a softcap", model: mpt, none: "",
			change: func(p *patient) { p.Scores(func(old string) string { return p.Tanh(old, 20) }) }},
		{name: "by distance with its sign", model: t5Encoder, none: alibi,
			change: func(p *patient) {
				p.without()
				p.weigh(p.Op("Mul", p.far(), p.Float(-0.125)))
			}},
	}
}

// upTo is 0 … n.
func upTo(n int64) (list []int64) {
	for i := range n + 1 {
		list = append(list, i)
	}
	return list
}

// queries is the index of each query as a float, keys that of each key; rows is the number of the batch's row.
func (p *patient) queries() string {
	past := p.Past()
	all := p.Op("Range", past, p.Op("Add", past, p.Size("input_ids", 1)), p.Int(1))
	return p.Op("Unsqueeze", p.Cast(all, onnx.Float), p.Ints(1))
}

func (p *patient) keys() string {
	return p.Op("Range", p.Int(0), p.Op("Add", p.Past(), p.Size("input_ids", 1)), p.Int(1))
}

func (p *patient) rows() string {
	return p.Op("Unsqueeze", p.Cast(p.Op("Range", p.Int(0), p.Size("input_ids", 0), p.Int(1)), onnx.Float), p.Ints(1, 2, 3))
}

// slopesTimes multiplies BLOOM's slopes.
func (p *patient) slopesTimes(factor float32) {
	for _, c := range p.Graph.Initializers {
		if values, err := c.Float64s(); err == nil && slices.Equal(values, bloomSlopes) {
			p.After(c.Name, func(slopes string) string { return p.Op("Mul", slopes, p.Float(factor)) })
		}
	}
}

// rounded makes the bias slopes times the key's position that are rounded to a type, as Falcon's are. Few tokens
// do not show it.
func (p *patient) rounded(to onnx.DataType) {
	p.without()
	slopes := p.Op("Mul", p.Cast(p.keys(), onnx.Float), p.headed(0.25, 0.0625, 0.015625, 0.00390625))
	p.weigh(p.Cast(p.Cast(slopes, to), onnx.Float))
}

// without takes a bias by buckets away: all of its numbers are 0.
func (p *patient) without() {
	for _, n := range p.Graph.Nodes {
		if n.OpType == "Gather" {
			if t := p.Graph.Initializer(n.Inputs[0]); t != nil && len(t.Dims) == 2 && t.Dims[1] == 4 {
				p.Into(n, 0, func(table string) string { return p.Op("Mul", table, p.Float(0)) })
			}
		}
	}
}

// TestManyHeads: of many heads that are alike two are measured, and all get the bias.
func TestManyHeads(t *testing.T) {
	testruntime.Require(t)
	size := largemodel.Llama{Layers: 1, Heads: 70, KVHeads: 70, HeadSize: 4, Intermediate: 16, Vocabulary: 32, Theta: 10000}
	path, _, err := size.Write(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		bias func(p *patient) string
		is   func(int, rope.Attention) error
	}{
		"slopes":  {func(p *patient) string { return p.Op("Mul", p.far(), p.Float(-0.01)) }, hasSlopes(0.01)},
		"buckets": {func(p *patient) string { return p.onlyAt(p.Op("Greater", p.distance(), p.Int(6)), 1) }, hasBuckets(0, 7)},
	} {
		p := patientAt(t, path)
		p.weigh(c.bias(p))
		m := kit.OpenModel(t, p.Saved())
		report, err := kit.Rewrite(context.Background(), m, rewrite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		a := report.Sites[0].Attention
		if err := c.is(0, *a); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := a.Distance.Check(a.Heads); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDistancesBesideRotation: in a model of which some layers rotate, methods for rotations leave a layer that has
// slopes alone; where it has both, linear divides both.
func TestDistancesBesideRotation(t *testing.T) {
	testruntime.Require(t)
	p := patientAt(t, kit.Model("../coverage/smollm3__ts17-cache"))
	p.weigh(p.Op("Mul", p.far(), p.Float(-0.5)))
	original := p.Saved()
	for method, want := range map[string]float64{"linear:factor=2": 0.25, "yarn:factor=2,original_max_position_embeddings=16": 0.5} {
		m := kit.OpenModel(t, original)
		report, err := kit.Rewrite(t.Context(), m, rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, method)}})
		if err != nil {
			t.Fatal(err)
		}
		layer := 0
		for _, n := range m.Graph.Nodes {
			if n.Domain != customop.Domain {
				continue
			}
			op, err := definition.Read(n)
			if err != nil {
				t.Fatal(err)
			}
			slope := want
			if report.Sites[layer].RotaryDim == 0 {
				slope = 0.5
			}
			if len(op.DistanceSlopes) == 0 || float64(op.DistanceSlopes[0]) != slope {
				t.Errorf("%s, layer %d of %d rotated channels: slopes %v, %g was expected", method, layer, report.Sites[layer].RotaryDim, op.DistanceSlopes, slope)
			}
			layer++
		}
		if layer != 2 || report.Sites[0].RotaryDim == report.Sites[1].RotaryDim {
			t.Errorf("%d layers, which rotate %d and %d channels", layer, report.Sites[0].RotaryDim, report.Sites[1].RotaryDim)
		}
	}
}

// TestDistances rewrites each changed export through the public API.
func TestDistances(t *testing.T) {
	testruntime.Require(t)
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range testsample.Of(t, distanceCases(), 9) {
		t.Run(c.name+"/"+c.model, func(t *testing.T) {
			t.Parallel()
			c.run(t, eng)
		})
	}
}

func (c distanceCase) run(t *testing.T, eng engine.Engine) {
	p := newPatient(t, c.model)
	c.change(p)
	original := p.Saved()
	m := kit.OpenModel(t, original)
	report, err := kit.Rewrite(context.Background(), m, rewrite.Options{AllowUnchanged: true})
	if c.is == nil {
		if !errors.Is(err, rewrite.ErrNoAttention) || !strings.Contains(err.Error(), c.none) {
			for _, s := range report.Sites {
				t.Logf("layer %d: %s %s; %s", s.Layer, s.Mask, s.Distance, s.Reason)
			}
			t.Fatalf("error %v lacks %q", err, c.none)
		}
		t.Log(err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range report.Sites {
		if s.Status != rewrite.Rewritten {
			t.Fatalf("layer %d is unchanged: %s", i, s.Reason)
		}
		if err := c.is(i, *s.Attention); err != nil {
			t.Errorf("layer %d: %v", i, err)
		}
	}
	patched := filepath.Join(t.TempDir(), "patched.onnx")
	if err := m.Save(patched, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	kit.CompareModels(t, eng, original, patched, 0)
}
