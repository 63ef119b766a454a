package prove

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/contrib"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// scaled tests what an op is written as where its caches are int8 with fixed scales. The op itself has no
// such caches, so float64 alone is what it is compared with, in two steps: the cache must hold what float64
// rounds to, and the output must be that of float64 over what the cache holds, within twice the error of a
// plain float32 implementation.
func scaled(ctx context.Context, eng engine.Engine, n *onnx.Node, op customop.RotaryAttention, scales contrib.Scales, opset int64, headSize int, write func(*onnx.Model) error) (float64, error) {
	attention, err := lower.Value(op, rope.Attention{})
	if err != nil {
		return 0, err
	}
	attention.HeadSize = headSize
	m := oneOp(n, opset)
	if err := write(m); err != nil {
		return 0, err
	}
	ir.RetypeCaches(m.Graph, func(name string) bool { return cacheScales(scales, name) != nil }, onnx.Int8)
	session, err := loaded(ctx, eng, m, false)
	if err != nil {
		return 0, err
	}
	defer session.Close()
	worst := 0.0
	for _, c := range contribCalls(op, attention) {
		e, err := (scaledCall{c, scales}).compare(ctx, session)
		if err != nil {
			return 0, fmt.Errorf("in a call of %d new tokens after %d: %w", c.Length, c.Past, err)
		}
		worst = max(worst, e)
	}
	return worst, nil
}

// cacheScales are the scales of a cache by its name in the specification, nil of other values.
func cacheScales(s contrib.Scales, name string) []float32 {
	switch name {
	case "past_key", "present_key":
		return s.Key
	case "past_value", "present_value":
		return s.Value
	}
	return nil
}

// scaledCall is a call whose caches are int8 with fixed scales.
type scaledCall struct {
	call
	scales contrib.Scales
}

// spread is the standard deviation of the keys and values that are drawn, in steps of their scales: a few
// of them are beyond what a cache holds.
const spread = 40

// halfway is how far from the middle between two steps either of them is right: float32 has rounded before.
const halfway = 1e-3

func (c scaledCall) compare(ctx context.Context, session engine.Session) (float64, error) {
	draws := min(1+2048/(c.Batch*c.Attention.Heads*c.Length*c.Attention.HeadSize), mostDraws)
	d := &deviation{}
	seed := 0
	for range 3 { // what seems wrong may be luck, and is judged by more numbers
		for ; seed < draws; seed++ {
			p, feeds, err := c.drawn(rand.New(rand.NewPCG(uint64(seed), 23)))
			if err != nil {
				return 0, err
			}
			got, err := session.Run(ctx, feeds)
			if err != nil {
				return 0, err
			}
			if err := c.hold(&p, got); err != nil {
				return 0, err
			}
			want, err := ref.Run(p)
			if err != nil {
				return 0, err
			}
			plain, err := ref.RunFloat32(p)
			if err != nil {
				return 0, err
			}
			values := got["output"].Values()
			if len(values) != len(want.Output) {
				return 0, fmt.Errorf("it %w: its output has %d numbers, not %d", ErrOff, len(values), len(want.Output))
			}
			for i, w := range want.Output {
				d.add(values[i], w, plain.Output[i])
			}
		}
		if d.holds() {
			return d.err / d.largest, nil
		}
		draws *= 8
	}
	return 0, fmt.Errorf("it %w: it is off by %.3g in output, more than twice the %.3g of a plain implementation", ErrOff, d.err, d.plain)
}

// drawn gives the call random numbers of the size that the scales are for, and the tensors to feed. Scores
// are as large as those of other calls.
func (c scaledCall) drawn(rng *rand.Rand) (ref.Problem, map[string]engine.Tensor, error) {
	p, feeds := c.filled(rng)
	keys, values := spread*mean(c.scales.Key), spread*mean(c.scales.Value)
	for _, f := range []struct {
		name   string
		of     *[]float64
		factor float64
	}{{"query", &p.Query, 1 / keys}, {"key", &p.Key, keys}, {"value", &p.Value, values}} {
		list := make([]float32, len(*f.of))
		for i, x := range *f.of {
			list[i] = float32(x * f.factor)
			(*f.of)[i] = float64(list[i])
		}
		feeds[f.name] = engine.Float32s(list, feeds[f.name].Dims...)
	}
	for name, past := range map[string]*[]float64{"past_key": &p.PastKey, "past_value": &p.PastValue} {
		steps := make([]int64, len(*past))
		for i, x := range *past {
			step := clamped(math.RoundToEven(x * spread))
			steps[i], (*past)[i] = int64(step), step*c.scale(name, i, len(*past))
		}
		t, err := engine.Integers(onnx.Int8, steps, feeds[name].Dims...)
		if err != nil {
			return p, nil, err
		}
		feeds[name] = t
	}
	return p, feeds, nil
}

// hold checks what the caches hold after the call, and gives it to the problem.
func (c scaledCall) hold(p *ref.Problem, got map[string]engine.Tensor) error {
	exact, err := ref.Run(*p)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		want []float64
		held *[]float64
	}{{"present_key", exact.PresentKey, &p.HeldKey}, {"present_value", exact.PresentValue, &p.HeldValue}} {
		t, given := got[f.name]
		steps := t.Values()
		if !given {
			return fmt.Errorf("it has no output %s", f.name)
		}
		if len(steps) != len(f.want) {
			return fmt.Errorf("it %w: %s has %d numbers, not %d", ErrOff, f.name, len(steps), len(f.want))
		}
		for i, step := range steps {
			scale := c.scale(f.name, i, len(steps))
			if want := f.want[i] / scale; !(math.Abs(step-clamped(want)) <= 0.5+halfway) && !c.behind(i) {
				return fmt.Errorf("it %w: %s has %g steps of a scale for %.6g", ErrOff, f.name, step, want)
			}
			*f.held = append(*f.held, step*scale)
		}
	}
	return nil
}

// scale is the scale of a number of a cache of so many numbers.
func (c scaledCall) scale(cache string, i, of int) float64 {
	list := cacheScales(c.scales, cache)
	if len(list) == 1 {
		return float64(list[0])
	}
	size := c.Attention.HeadSize
	head := i / (of / (c.Batch * c.Attention.KVHeads)) % c.Attention.KVHeads
	return float64(list[head*size+i%size])
}

func clamped(step float64) float64 {
	return min(max(step, contrib.LeastStep), contrib.GreatestStep)
}

func mean(list []float32) (m float64) {
	for _, x := range list {
		m += float64(x) / float64(len(list))
	}
	return m
}
