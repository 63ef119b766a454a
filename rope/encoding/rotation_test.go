package encoding_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/encoding"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// rotation is RoFormer's.
func rotation(size int) rope.Encoding {
	return rope.Encoding{Frequencies: encoding.Powers(size, 10000), Layout: rope.Interleaved, ExactAngles: true}
}

// Qwen2-VL computes frequencies and angles in float32: the error of an angle grows with it.
func TestRotation2D(t *testing.T) {
	for _, c := range golden[struct {
		Size          int
		Rows, Columns []int64
		X, Rotated    [][]float64
	}](t, "rotation2d") {
		e := encoding.Rotation2D{Size: c.Size}.Encoding()
		for token, x := range c.X {
			got := ref.Rotate(e, x, float64(c.Rows[token]), float64(c.Columns[token]))
			far := float64(max(c.Rows[token], c.Columns[token]))
			for channel, want := range c.Rotated[token] {
				pair := channel % (c.Size / 2)
				length := math.Hypot(x[pair], x[pair+c.Size/2])
				near(t, fmt.Sprintf("size %d, token %d, channel %d", c.Size, token, channel), got[channel], want, (4+4*far)*unit32*length)
			}
		}
	}
	// Interleaved, rows turn the first half of the channels and columns the second.
	got := ref.Rotate(encoding.Rotation2D{Size: 8, Layout: rope.Interleaved}.Encoding(), []float64{1, 0, 1, 0, 1, 0, 1, 0}, 0, 1)
	for channel, want := range []float64{1, 0, 1, 0, math.Cos(1), math.Sin(1), math.Cos(0.01), math.Sin(0.01)} {
		near(t, fmt.Sprintf("channel %d", channel), got[channel], want, 4*unit64)
	}
}

func TestRoPEBias(t *testing.T) {
	for _, c := range golden[struct {
		Size  int
		Q, K  [][]float64
		A, B  []float64
		Score [][]float64
	}](t, "rope_bias") {
		r := encoding.RoPEBias{Rotation: rotation(c.Size), Query: c.A, Key: c.B}
		for p, q := range c.Q {
			for s, k := range c.K {
				size := 0.0 // of what is added
				for i := range q {
					size += (math.Abs(q[i]) + math.Abs(c.A[i])) * (math.Abs(k[i]) + math.Abs(c.B[i]))
				}
				near(t, fmt.Sprintf("size %d, query %d, key %d", c.Size, p, s), r.Score(q, k, int64(p), int64(s)), c.Score[p][s], 64*unit64*(1+size)*float64(c.Size))
			}
		}
	}
}

func TestLinearAttention(t *testing.T) {
	for _, c := range golden[struct {
		Size    int
		Causal  bool
		Q, K, V [][]float64
		Out     [][]float64
	}](t, "linear_attention") {
		got := encoding.LinearAttention{Rotation: rotation(c.Size), Causal: c.Causal}.Run(c.Q, c.K, c.V)
		for m := range got {
			for x, want := range c.Out[m] {
				near(t, fmt.Sprintf("size %d, token %d, channel %d", c.Size, m, x), got[m][x], want, 256*unit64*float64(c.Size))
			}
		}
	}
}
