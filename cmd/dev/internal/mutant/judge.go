package mutant

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// Verdict is what came of a mutant.
type Verdict string

const (
	NotRun    Verdict = "not run"   // ONNX Runtime does not run it, or it gives no numbers
	Unsteady  Verdict = "unsteady"  // rounding decides what it gives
	Unchanged Verdict = "unchanged" // none of its attention layers is rewritten, or it is refused
	Same      Verdict = "same"      // rewritten, with the same output
	Wrong     Verdict = "wrong"     // rewritten, with another output
)

// Judged reports whether a mutant says something about the rewriter.
func (v Verdict) Judged() bool { return v != NotRun && v != Unsteady }

// allowed is the largest difference of logits, as a share of their range, of a rewritten mutant.
const allowed = 1e-4

// Judge saves a model to folder, rewrites it without a method and compares the two: as they are,
// and where they differ in float64, which tells rounding from another output. worker is the
// command that evaluates (rewrite.Options.Evaluation.Worker). why is a sentence.
func Judge(ctx context.Context, eng engine.Engine, m *onnx.Model, folder string, worker []string) (v Verdict, why string, _ error) {
	original, patched := filepath.Join(folder, File), filepath.Join(folder, "patched.onnx")
	if err := m.Save(original, onnx.SaveOptions{Force: true}); err != nil {
		return NotRun, err.Error(), nil
	}
	want, err := logits(ctx, eng, original)
	if err != nil {
		return NotRun, err.Error(), ctx.Err()
	}
	again, err := onnx.Open(original)
	if err != nil {
		return NotRun, "", err
	}
	defer again.Close()
	report, err := rewrite.Rewrite(ctx, again, rewrite.Options{Evaluation: rewrite.Evaluation{Worker: worker}, AllowUnchanged: true})
	if ctx.Err() != nil {
		return NotRun, "", ctx.Err()
	}
	if err != nil || report.Replaced() == 0 {
		return Unchanged, fmt.Sprint(err), nil
	}
	if err := again.Save(patched, onnx.SaveOptions{Force: true}); err != nil {
		return NotRun, "", err
	}
	got, err := logits(ctx, eng, patched)
	off := want.Off(got)
	switch {
	case err != nil:
		why = "the rewritten model does not run: " + err.Error()
	case off <= allowed:
		return Same, "", nil
	default:
		why = fmt.Sprintf("the rewritten model is off by %.2g of the range", off)
		if exact, err := inFloat64(ctx, eng, original, patched); err == nil && exact <= allowed {
			return Same, "", ctx.Err()
		}
	}
	// What ONNX Runtime's optimizations change, or save from failing, says nothing of the rewriter.
	plain, err := logits(ctx, unoptimized{eng}, original)
	if err != nil {
		return NotRun, err.Error(), ctx.Err()
	}
	if own := want.Off(plain); own > off/10 {
		return Unsteady, fmt.Sprintf("it differs from itself by %.2g of the range, the rewritten model by %.2g", own, off), nil
	}
	if err := withoutNaN(ctx, eng, original, filepath.Join(folder, "guarded.onnx")); err != nil {
		return Unsteady, "its attention input is NaN or infinite: " + err.Error(), ctx.Err()
	}
	moved, err := lastBits(ctx, eng, original, filepath.Join(folder, "bits.onnx"))
	if err != nil {
		return NotRun, err.Error(), ctx.Err()
	}
	if own := want.Off(moved); own > off/10 {
		return Unsteady, fmt.Sprintf("it moves by %.2g of the range when the last bits of its weights are flipped, the rewritten model is off by %.2g", own, off), nil
	}
	return Wrong, why, ctx.Err()
}

// File is the name of the mutant in the folder that Judge is given.
const File = "mutant.onnx"

// Exact is what a model gives when all but our op is computed in float64.
func Exact(ctx context.Context, eng engine.Engine, path string) (Logits, error) {
	d, err := decoder.Open(ctx, eng, path, decoder.Options{Change: rewrite.InFloat64})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return run(ctx, d)
}

// inFloat64 is how far two models are from each other when all but our op is computed in float64.
func inFloat64(ctx context.Context, eng engine.Engine, a, b string) (float64, error) {
	want, err := Exact(ctx, eng, a)
	if err != nil {
		return 0, err
	}
	got, err := Exact(ctx, eng, b)
	return want.Off(got), err
}

// lastBits returns a model's logits with the last bit of each weight flipped: a
// model that divides by numbers near zero makes much of any rounding.
func lastBits(ctx context.Context, eng engine.Engine, path, flipped string) (Logits, error) {
	m, err := onnx.Open(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	for i, t := range m.Graph.Initializers {
		raw, err := t.Bytes()
		if err != nil {
			return nil, err
		}
		if t.Type != onnx.Float || len(t.Dims) < 2 {
			continue
		}
		raw = slices.Clone(raw)
		for k := 0; k < len(raw); k += 4 {
			raw[k] ^= 1
		}
		m.Graph.Initializers[i] = onnx.NewTensor(t.Name, t.Type, t.Dims, raw)
	}
	if err := m.Save(flipped, onnx.SaveOptions{Force: true}); err != nil {
		return nil, err
	}
	return logits(ctx, eng, flipped)
}

// withoutNaN is an error when a model's attention layers are given NaN, which some
// exports turn into zeros: then its logits are divided by 0.
func withoutNaN(ctx context.Context, eng engine.Engine, path, guarded string) error {
	m, err := onnx.Open(path)
	if err != nil {
		return err
	}
	defer m.Close()
	var given []string
	for _, n := range m.Graph.Nodes {
		switch n.OpType {
		case "Softmax":
			given = append(given, n.Inputs[0])
		case "Attention", "MultiHeadAttention", "GroupQueryAttention":
			given = append(given, n.Inputs[:min(3, len(n.Inputs))]...)
		}
	}
	one := onnx.NewTensor("guard/one", onnx.Float, nil, binary.LittleEndian.AppendUint32(nil, math.Float32bits(1)))
	m.Graph.AddInitializer(one)
	left := one.Name
	node := func(op, out string, inputs []string, attrs ...*onnx.Attribute) string {
		m.Graph.InsertNode(nil, onnx.NewNode(op, inputs, []string{out}, attrs...))
		return out
	}
	for i, v := range given {
		part := func(p string) string { return fmt.Sprintf("guard/%d/%s", i, p) }
		wrong := node("Cast", part("float"), []string{node("IsNaN", part("wrong"), []string{v})}, onnx.IntAttr("to", int64(onnx.Float)))
		any := node("ReduceMax", part("any"), []string{wrong}, onnx.IntAttr("keepdims", 0))
		left = node("Mul", part("left"), []string{left, node("Sub", part("none"), []string{one.Name, any})})
	}
	for _, o := range m.Graph.Outputs {
		if len(o.Shape) == 3 {
			o.Name = node("Div", "guard/"+o.Name, []string{o.Name, left})
		}
	}
	if err := m.Save(guarded, onnx.SaveOptions{Force: true}); err != nil {
		return err
	}
	_, err = logits(ctx, eng, guarded)
	return err
}

// unoptimized is an engine that keeps every node as the exporter wrote it.
type unoptimized struct{ engine.Engine }

func (u unoptimized) Load(ctx context.Context, m engine.Model) (engine.Session, error) {
	m.Optimize = false
	return u.Engine.Load(ctx, m)
}

// length of the sequences that a mutant is judged by.
const length = 21

// logits runs a model in one call and, with a cache, in chunks and token by token,
// on a row without padding and one with padding on the left (on the right of the
// first call where the cache tracks the length of each row). It returns the logits
// of the other tokens.
func logits(ctx context.Context, eng engine.Engine, path string) (Logits, error) {
	d, err := decoder.Open(ctx, eng, path, decoder.Options{})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return run(ctx, d)
}

// run is logits of a model that is loaded.
func run(ctx context.Context, d *decoder.Decoder) (Logits, error) {
	calls := [][]int64{{length}}
	if d.Cached() {
		calls = append(calls, []int64{12, 9}, []int64{17, 1, 1, 1, 1})
	}
	var out Logits
	for _, lengths := range calls {
		s := d.Random(lengths[0], length, 0)
		all, err := d.Chunks(ctx, s, lengths...)
		if err != nil {
			return nil, err
		}
		width := len(all) / len(s.Mask)
		var real []float64
		for i, x := range all {
			if s.Mask[i/width] == 0 {
				continue
			}
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return nil, fmt.Errorf("it gives %g", x)
			}
			real = append(real, x)
		}
		out = append(out, real)
	}
	return out, nil
}

// Logits are those of the tokens that are not padding, for each way of running.
type Logits [][]float64

// Off is the largest difference as a share of the range, over all ways of running.
func (l Logits) Off(got Logits) float64 {
	worst := 0.0
	for k, list := range l {
		if k >= len(got) || len(list) != len(got[k]) {
			return math.Inf(1)
		}
		low, high, off := math.Inf(1), math.Inf(-1), 0.0
		for i, x := range list {
			low, high = min(low, x), max(high, x)
			off = max(off, math.Abs(x-got[k][i]))
		}
		if off > 0 {
			worst = max(worst, off/(high-low))
		}
	}
	return worst
}
