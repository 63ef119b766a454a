package golden_test

import (
	"context"
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// inBFloat16 saves a float16 model with bfloat16 in its place, after a change.
func inBFloat16(t *testing.T, from string, change func(*onnx.Graph)) string {
	t.Helper()
	m, err := onnx.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	g := m.Graph
	converted := func(x *onnx.Tensor) *onnx.Tensor {
		values, err := x.Float64s()
		if err != nil {
			t.Fatal(err)
		}
		return brains(x.Name, x.Dims, values)
	}
	for _, list := range [][]*onnx.ValueInfo{g.Inputs, g.Outputs, g.ValueInfo} {
		for i, v := range list {
			if v.Type == onnx.Float16 {
				list[i] = v.Clone()
				list[i].Type = onnx.BFloat16
			}
		}
	}
	for i, x := range g.Initializers {
		if x.Type == onnx.Float16 {
			g.Initializers[i] = converted(x)
		}
	}
	for _, n := range g.Nodes {
		if n.Int("to", 0) == int64(onnx.Float16) {
			n.SetAttribute(onnx.IntAttr("to", int64(onnx.BFloat16)))
		}
		if x := n.Tensor("value"); x != nil && x.Type == onnx.Float16 {
			n.SetAttribute(onnx.TensorAttr("value", converted(x)))
		}
	}
	change(g)
	out := filepath.Join(t.TempDir(), "bfloat16.onnx")
	if err := m.Save(out, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return out
}

// brains is a bfloat16 tensor of the nearest numbers.
func brains(name string, dims []int64, values []float64) *onnx.Tensor {
	var raw []byte
	for _, x := range values {
		raw = binary.LittleEndian.AppendUint16(raw, uint16(math.Float32bits(float32(rope.BFloat16.Round(x)))>>16))
	}
	return onnx.NewTensor(name, onnx.BFloat16, dims, raw)
}

// frequencies gives the model's constant of 8 frequencies other values.
func frequencies(t *testing.T, values []float64) func(*onnx.Graph) {
	return func(g *onnx.Graph) {
		for i, x := range g.Initializers {
			if x.Type == onnx.BFloat16 && x.Len() == 8 && slices.Contains(x.Dims, 8) && len(x.Dims) == 3 {
				g.Initializers[i] = brains(x.Name, x.Dims, values)
				return
			}
		}
		t.Fatal("no constant of frequencies")
	}
}

// TestBFloat16: models that ONNX Runtime does not run on this provider are
// proven all the same, their nodes computed as kernels of bfloat16 would.
func TestBFloat16(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	scaled := make([]float64, 8)
	for i := range scaled {
		scaled[i] = rope.BFloat16.Round(math.Pow(10000, -float64(i)/8) / (1 + float64(i)))
	}
	var plain []float64
	for i := range 8 {
		plain = append(plain, rope.BFloat16.Round(math.Pow(10000, -float64(i)/8)))
	}
	for _, c := range []struct {
		name, from string
		change     func(*onnx.Graph)
		want       []float64
	}{
		{"llama", "llama__dynamo18-fp16", frequencies(t, plain), plain},
		{"scaled frequencies", "llama__dynamo18-fp16", frequencies(t, scaled), scaled},
		{"gpt_neox", "gpt_neox__dynamo18-fp16", func(*onnx.Graph) {}, nil},
		{"genai", "llama__genai-fp16", func(*onnx.Graph) {}, nil},
		{"slopes", "bloom__dynamo18-fp16", func(*onnx.Graph) {}, nil},
		{"buckets", "t5_decoder__dynamo18-fp16", func(*onnx.Graph) {}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			original := inBFloat16(t, kit.Model(c.from), c.change)
			patched, report := kit.Patch(t, original, rewrite.Options{})
			for _, s := range report.Sites {
				e := s.Attention.Encoding
				if c.want != nil && (e.Precision != rope.BFloat16 || !slices.Equal(e.Frequencies, c.want)) {
					t.Errorf("layer %d has frequencies %v in type %d, %v in bfloat16 was expected", s.Layer, e.Frequencies, e.Precision, c.want)
				}
				t.Logf("layer %d: base %g, off by %.2g, the original by %.2g", s.Layer, s.Theta, s.Proof.MaxError, s.Proof.OriginalError)
			}
			if c.name == "genai" {
				return // ONNX Runtime puts the emulated present where the past stands
			}
			result := kit.Validated(t, original, patched, 48)
			if !result.Same || len(result.Notes) == 0 || !strings.Contains(result.Notes[0], "has no kernels") {
				t.Errorf("%+v", result)
			}
			method := kit.Spec(t, rope.ScalingAxis, "linear:factor=2")
			if c.name == "buckets" { // which no scaling changes
				method = kit.Spec(t, rope.MaskAxis, "sliding-window:window=4")
			}
			other, _ := kit.Patch(t, original, rewrite.Options{Edits: []rope.Spec{method}})
			if result = kit.Validated(t, original, other, 48); result.Same {
				t.Errorf("a model that is not the same passes: %+v", result)
			}
		})
	}
}

// What turns query and key differently is no less seen in bfloat16.
func TestBFloat16Lookalike(t *testing.T) {
	testruntime.Require(t)
	path := inBFloat16(t, kit.Model("llama__dynamo18-fp16"), func(g *onnx.Graph) {
		for _, n := range slices.Clone(g.Nodes) {
			if n.OpType == "Sin" {
				// The sine of an angle a fiftieth larger.
				g.AddInitializer(onnx.NewTensor("larger", onnx.Float, []int64{}, binary.LittleEndian.AppendUint32(nil, math.Float32bits(1.02))))
				g.InsertNode(n, onnx.NewNode("Mul", []string{n.Inputs[0], "larger"}, []string{"larger_angle"}))
				n.Inputs[0] = "larger_angle"
				return
			}
		}
	})
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	report, err := kit.Rewrite(context.Background(), m, rewrite.Options{AllowUnchanged: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range report.Sites {
		if !s.ScoresOnly || !strings.Contains(s.Reason, "is not rotated by position") {
			t.Errorf("layer %d is %s: %s", s.Layer, s.Status, s.Reason)
		}
	}
}
