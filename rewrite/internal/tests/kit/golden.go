package kit

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Testdata is the folder of exports and goldens, from that of a test.
const Testdata = "../../../../testdata"

// Local evaluates in this process, as most tests do: a worker takes twice the time to
// decode token by token.
func Local(t *testing.T) engine.Engine {
	t.Helper()
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	return eng
}

// Model returns the path of an export: NAME, or NAME/COMPONENT of an export with several graphs.
func Model(name string) string {
	if !strings.Contains(name, "/") {
		name += "/model"
	}
	return filepath.Join(Testdata, "models", name+".onnx")
}

// Patch rewrites a model into a temporary file and expects every site proven,
// now or in an earlier call.
func Patch(t *testing.T, path string, opts rewrite.Options) (string, *rewrite.Report) {
	t.Helper()
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	report, err := Rewrite(context.Background(), m, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range report.Sites {
		if s.Status != rewrite.Rewritten {
			t.Fatalf("layer %d is unchanged: %s", s.Layer, s.Reason)
		}
	}
	out := filepath.Join(t.TempDir(), "model.onnx")
	if err := m.Save(out, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return out, report
}

// Spec reads a method.
func Spec(t *testing.T, axis rope.Axis, text string) rope.Spec {
	t.Helper()
	s, err := rope.ParseSpec(axis, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Golden is the inputs of a file of goldens, plain or left-padded.
type Golden struct {
	Sequence decoder.Sequence
	Want     []float32 // [Batch, Length, vocabulary], or the real rows of the second sequence
	Padded   bool
}

// ReadGolden reads the inputs and logits of an architecture.
func ReadGolden(t *testing.T, architecture, key string, padded bool) Golden {
	t.Helper()
	f, err := npz.Open(filepath.Join(Testdata, "goldens", architecture+".npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	suffix := ""
	if padded {
		suffix = "_pad"
	}
	g := Golden{Padded: padded}
	for name, into := range map[string]*[]int64{"ids": &g.Sequence.IDs, "mask": &g.Sequence.Mask, "pos": &g.Sequence.Positions} {
		data, shape, err := f.Int64(name + suffix)
		if err != nil {
			t.Fatal(err)
		}
		*into = data
		g.Sequence.Batch, g.Sequence.Length = int64(shape[0]), int64(shape[1])
	}
	if g.Want, _, err = f.Float32(key + suffix); err != nil {
		t.Fatal(err)
	}
	return g
}

// Distance returns the largest difference between logits and the golden.
func (g Golden) Distance(t *testing.T, logits []float64) float64 {
	t.Helper()
	if g.Padded {
		width := len(logits) / int(g.Sequence.Batch*g.Sequence.Length)
		start := int(g.Sequence.Length) // the second row
		for g.Sequence.Mask[start] == 0 {
			start++
		}
		logits = logits[start*width : 2*int(g.Sequence.Length)*width]
	}
	if len(logits) != len(g.Want) {
		t.Fatalf("%d logits, the golden has %d", len(logits), len(g.Want))
	}
	worst := 0.0
	for i, x := range logits {
		worst = math.Max(worst, math.Abs(x-float64(g.Want[i])))
	}
	return worst
}

// Ways of running a sequence of 48 tokens.
var Ways = map[string][]int64{
	"prefill":        {48},
	"two chunks":     {17, 31},
	"token by token": slices.Repeat([]int64{1}, 48),
	"then decode":    slices.Concat([]int64{32}, slices.Repeat([]int64{1}, 16)),
}

// ReadMaskGolden is ReadGolden for the goldens of masks.
func ReadMaskGolden(t *testing.T, architecture, key, documents string, padded bool) Golden {
	t.Helper()
	g := ReadGolden(t, architecture, "plain", padded)
	f, err := npz.Open(filepath.Join(Testdata, "goldens", architecture+"_masks.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	suffix := ""
	if padded {
		suffix = "_pad"
	}
	if g.Want, _, err = f.Float32(key + suffix); err != nil {
		t.Fatal(err)
	}
	if documents != "" {
		if g.Sequence.Documents, _, err = f.Int64(documents + suffix); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// RightPadded moves the padding of the second row, which the goldens have on the
// left, to the right end of a first call of the given length. back brings
// logits into the goldens' order.
func (g Golden) RightPadded(first int64) (s decoder.Sequence, back func(logits []float64) []float64) {
	if !g.Padded {
		return g.Sequence, func(logits []float64) []float64 { return logits }
	}
	length := g.Sequence.Length
	row := func(list []int64) []int64 { return list[length:] }
	pad := int64(slices.Index(row(g.Sequence.Mask), 1))
	var order []int64 // the golden's place of each place
	for i := pad; i < first; i++ {
		order = append(order, i)
	}
	for i := range pad {
		order = append(order, i)
	}
	for i := first; i < length; i++ {
		order = append(order, i)
	}
	s = decoder.Sequence{Batch: 2, Length: length}
	for _, c := range []struct{ into, from *[]int64 }{{&s.IDs, &g.Sequence.IDs}, {&s.Mask, &g.Sequence.Mask}, {&s.Positions, &g.Sequence.Positions}} {
		*c.into = slices.Clone((*c.from)[:length])
		for _, i := range order {
			*c.into = append(*c.into, row(*c.from)[i])
		}
	}
	return s, func(logits []float64) []float64 {
		width := int64(len(logits)) / (2 * length)
		out := slices.Clone(logits)
		for to, from := range order {
			copy(out[(length+from)*width:][:width], logits[(length+int64(to))*width:][:width])
		}
		return out
	}
}
