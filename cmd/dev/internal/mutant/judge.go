package mutant

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

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

// Judge is who judges mutants.
type Judge struct {
	Engine    engine.Engine // runs mutants
	Optimized bool          // after ONNX Runtime's graph optimisations; without them, models load in half the time
	Worker    []string      // command that evaluates for a rewrite (rewrite.Options.Evaluation.Worker); nil for this process
	Folder    string        // where files are kept, the mutant and what it is rewritten to; "" for nowhere
}

// Judge rewrites a model without a method and compares the two: as they are, and where they differ with
// float64, which tells rounding from another output. m is not changed; files beside its own say nothing.
// The context may have engines that a rewrite evaluates by (engine.WithOpener). why is a sentence.
func (j *Judge) Judge(ctx context.Context, m *onnx.Model) (v Verdict, why string, _ error) {
	raw, err := m.Marshal()
	if err != nil {
		return NotRun, err.Error(), nil
	}
	if err := j.keep("mutant.onnx", m); err != nil {
		return NotRun, "", err
	}
	original, err := onnx.Parse(raw)
	if err != nil {
		return NotRun, err.Error(), nil
	}
	want, err := Run(ctx, j.Engine, original, j.Optimized)
	if err != nil {
		return NotRun, err.Error(), ctx.Err()
	}
	patched := original.Clone()
	report, err := rewrite.Rewrite(ctx, patched, rewrite.Options{Evaluation: rewrite.Evaluation{Worker: j.Worker}, AllowUnchanged: true})
	if ctx.Err() != nil {
		return NotRun, "", ctx.Err()
	}
	if fault := (*rewrite.FaultError)(nil); errors.As(err, &fault) {
		return Wrong, err.Error(), nil
	}
	if err != nil || report.Replaced() == 0 {
		return Unchanged, fmt.Sprint(err), nil
	}
	if err := j.keep("patched.onnx", patched); err != nil {
		return NotRun, "", err
	}
	got, err := Run(ctx, j.Engine, patched, j.Optimized)
	if err != nil { // ONNX Runtime shares buffers by the sizes that a model declares, which are not the mutant's
		original, patched = undeclared(original), undeclared(patched)
		if other, failed := Run(ctx, j.Engine, original, j.Optimized); failed == nil {
			want = other
			got, err = Run(ctx, j.Engine, patched, j.Optimized)
		}
	}
	off := want.Off(got)
	switch {
	case err != nil:
		why = "the rewritten model does not run: " + err.Error()
	case off <= allowed:
		return Same, "", nil
	default:
		why = fmt.Sprintf("the rewritten model is off by %.2g of the range", off)
		if rounding, err := j.isRounding(ctx, original, patched, want, got); rounding || err != nil {
			return Same, "", err
		}
	}
	if reason, err := j.unsteady(ctx, original, want, off); reason != "" || err != nil {
		return Unsteady, reason, err
	}
	return Wrong, why, ctx.Err()
}

// isRounding reports whether a model and what it was rewritten to differ by rounding alone: they are the same without
// steps of activations, or in float64, or the second is off from the first in float64 by at most twice as much as this is itself, which is the
// rule of a proof. A model that cannot be computed in float64, such as one with branches, is computed without its
// roundings to 16 bits.
func (j *Judge) isRounding(ctx context.Context, original, patched *onnx.Model, want, got Logits) (bool, error) {
	if same, err := j.sameWithoutSteps(ctx, original, patched); same || err != nil {
		return same, err
	}
	exact, err := Exact(ctx, j.Engine, original)
	if err != nil {
		finer, err := Run(ctx, j.Engine, withoutHalves(original), j.Optimized)
		return err == nil && got.Off(finer) <= 2*want.Off(finer), ctx.Err()
	}
	if got.Off(exact) <= 2*want.Off(exact) {
		return true, nil
	}
	other, err := Exact(ctx, j.Engine, patched)
	return err == nil && exact.Off(other) <= allowed, ctx.Err()
}

// sameWithoutSteps reports whether a model and what it was rewritten to round activations to integers, where the last
// bit of a number, or a padded token that is the largest of all, decides about a whole step, and are the same without
// that.
func (j *Judge) sameWithoutSteps(ctx context.Context, original, patched *onnx.Model) (bool, error) {
	smooth, steps := withoutSteps(original)
	if !steps {
		return false, nil
	}
	want, err := Run(ctx, j.Engine, smooth, j.Optimized)
	if err != nil {
		return false, ctx.Err()
	}
	smooth, _ = withoutSteps(patched)
	got, err := Run(ctx, j.Engine, smooth, j.Optimized)
	return err == nil && want.Off(got) <= allowed, ctx.Err()
}

// withoutSteps is a copy of a model whose products by weights of few bits leave activations in float32, and whose
// activations of 8 bits have steps of one size, and not of the size that the largest of all tokens asks for. steps says
// whether there are any.
func withoutSteps(m *onnx.Model) (_ *onnx.Model, steps bool) {
	const inFloat32, inInt8 = 1, 4
	m = m.Clone()
	for g := range m.Graph.AllGraphs() {
		for i, n := range g.Nodes {
			switch {
			case n.OpType == "MatMulNBits" && n.Int("accuracy_level", 0) == inInt8:
				n.SetAttribute(onnx.IntAttr("accuracy_level", inFloat32))
				steps = true
			case n.OpType == "DynamicQuantizeLinear" && len(n.Outputs) == 3:
				g.Nodes[i] = onnx.NewNode("QuantizeLinear", []string{n.Inputs[0], n.Outputs[1], n.Outputs[2]}, n.Outputs[:1])
				g.Initializers = append(g.Initializers, onnx.NewTensor(n.Outputs[1], onnx.Float, nil, binary.LittleEndian.AppendUint32(nil, math.Float32bits(1./16))),
					onnx.NewTensor(n.Outputs[2], onnx.Uint8, nil, []byte{128}))
				steps = true
			}
		}
	}
	return m, steps
}

// undeclared is a copy of a model that says nothing of the values between its inputs and outputs.
func undeclared(m *onnx.Model) *onnx.Model {
	m = m.Clone()
	for g := range m.Graph.AllGraphs() {
		g.ValueInfo = nil
	}
	return m
}

// withoutHalves is a copy of a model whose casts to 16 bits give float32.
func withoutHalves(m *onnx.Model) *onnx.Model {
	m = m.Clone()
	for n := range m.Graph.AllNodes() {
		if to := onnx.DataType(n.Int("to", 0)); n.OpType == "Cast" && n.Domain == "" && (to == onnx.Float16 || to == onnx.BFloat16) {
			n.SetAttribute(onnx.IntAttr("to", int64(onnx.Float)))
		}
	}
	return m
}

func (j *Judge) keep(name string, m *onnx.Model) error {
	if j.Folder == "" {
		return nil
	}
	raw, err := m.Marshal()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(j.Folder, name), raw, 0o644)
}
