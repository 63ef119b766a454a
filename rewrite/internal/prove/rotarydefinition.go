package prove

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// RotaryDefinition is Definition for the op Rotary, in a format with a dimension for sequences. heads are
// those of query and, where there is one, key.
func RotaryDefinition(ctx context.Context, eng engine.Engine, n *onnx.Node, op customop.Rotary, f *onnx.Function, opset int64, heads [2]int, headSize int) (float64, error) {
	sessions, err := bothWays(ctx, eng, n, opset, carrying(f))
	if err != nil {
		return 0, err
	}
	for _, s := range sessions {
		defer s.Close()
	}
	r := rope.Rotary{Encoding: lower.EncodingOf(op.Rotation(), rope.Float32), TensorFormat: op.TensorFormat, Inverse: op.Inverse == 1}
	worst := 0.0
	for _, c := range rotaryCalls(op) {
		e, err := c.compare(ctx, sessions, r, heads, headSize)
		if err != nil {
			return 0, fmt.Errorf("in a call of %d new tokens from position %d on: %w", c.length, c.first, err)
		}
		worst = max(worst, e)
	}
	return worst, nil
}

// rotaryCall is the shape of a call of Rotary.
type rotaryCall struct {
	batch, length int
	first         int64 // position of the first token
	ids, offsets  bool  // the op reads positions, or where they begin
	key           bool  // it rotates a key too
	axes          int
}

// rotaryCalls are prefill, single tokens, far positions, and both sides of a trained length.
func rotaryCalls(op customop.Rotary) (list []rotaryCall) {
	axes := 1
	for _, axis := range op.PositionAxes {
		axes = max(axes, int(axis)+1)
	}
	add := func(batch, length int, first int64) {
		if op.PositionIDs == "" && op.SeqlenOffsets == "" {
			first = 0
		}
		list = append(list, rotaryCall{batch, length, first, op.PositionIDs != "", op.SeqlenOffsets != "", op.Key != "", axes})
	}
	add(1, 5, 0)
	add(2, 7, 4)
	add(3, 1, 9)
	add(1, 3, farthestPosition)
	if n := op.TrainedLength; n > 0 {
		add(2, 1, n-1)
		add(2, 1, n)
		add(1, 6, max(n-3, 0))
	}
	return list
}

// shape is that of a tensor with so many heads.
func (c rotaryCall) shape(format string, heads, headSize int) []int {
	switch format {
	case "bhsd":
		return []int{c.batch, heads, c.length, headSize}
	case "sbhd":
		return []int{c.length, c.batch, heads, headSize}
	}
	return []int{c.batch, c.length, heads, headSize}
}

// compare runs a call on random numbers.
func (c rotaryCall) compare(ctx context.Context, sessions [2]engine.Session, r rope.Rotary, heads [2]int, headSize int) (worst float64, _ error) {
	rng := rand.New(rand.NewPCG(uint64(c.length), 23))
	feeds := map[string]engine.Tensor{}
	if c.offsets {
		r.SeqlenOffsets = []int32{int32(c.first)}
		// This type is known to be one of integers.
		feeds["seqlen_offsets"], _ = engine.Integers(onnx.Int32, []int64{c.first}, 1)
	}
	if c.ids {
		r.PositionIDs = make([]int64, c.axes*c.batch*c.length)
		for i := range r.PositionIDs { // axes and rows differ
			r.PositionIDs[i] = max(c.first+int64(i%c.length)-int64(i/c.length), 0)
		}
		dims := []int64{int64(c.axes), int64(c.batch), int64(c.length)}
		if r.Encoding.Axes == nil {
			dims = dims[1:]
		}
		feeds["position_ids"], _ = engine.Integers(onnx.Int64, r.PositionIDs, dims...)
	}
	names := []string{"query", "key"}
	if !c.key {
		names = names[:1]
	}
	want, plain := [2][]float64{}, [2][]float64{}
	for i, name := range names {
		shape := c.shape(r.TensorFormat, heads[i], headSize)
		dims := []int64{int64(shape[0]), int64(shape[1]), int64(shape[2]), int64(shape[3])}
		x, wide := make([]float32, engine.Elements(dims)), make([]float64, engine.Elements(dims))
		for at := range x {
			x[at] = float32(rng.NormFloat64())
			wide[at] = float64(x[at])
		}
		feeds[name] = engine.Float32s(x, dims...)
		var err error
		if want[i], err = ref.Rotary(wide, shape, r); err == nil {
			plain[i], err = ref.RotaryFloat32(wide, shape, r)
		}
		if err != nil {
			return 0, err
		}
	}
	for way, s := range sessions {
		got, err := s.Run(ctx, feeds)
		if err != nil {
			return 0, err
		}
		for i, name := range names {
			d, values := deviation{}, got["rotated_"+name].Values()
			if len(values) != len(want[i]) {
				return 0, fmt.Errorf("it %w: the rotated %s has %d elements, expected %d", ErrOff, name, len(values), len(want[i]))
			}
			for at, w := range want[i] {
				d.add(values[at], w, plain[i][at])
			}
			if !d.holds() {
				return 0, fmt.Errorf("%s %w: the rotated %s is off by %.3g, more than twice the %.3g of a plain implementation", []string{"it", "the op library"}[way], ErrOff, name, d.err, d.plain)
			}
			if way == 0 && d.largest > 0 {
				worst = max(worst, d.err/d.largest)
			}
		}
	}
	return worst, nil
}
