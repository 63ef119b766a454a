package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/modelconfig"
	"github.com/rope-rewrite/rope-rewrite/internal/ranges"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// RefusedError says why a model cannot be repaired.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return "not repaired: " + e.Reason }

// Repair audits a model and, where it differs from its configuration, opens it once
// more, rewrites it by what the configuration says and hands it to save. Layers that
// agree are unchanged. The report's Repaired lists what was changed; it is empty
// where nothing differs, and nothing is saved then.
//
// The error is one of Run's or of rewrite.Rewrite's, or a *RefusedError: something
// differs that no method changes, or the rewritten model still differs.
func Repair(ctx context.Context, path string, opts Options, save func(*onnx.Model) error) (*Report, error) {
	r, s, err := run(ctx, path, opts)
	if err != nil || r.Count(Differs) == 0 {
		return r, err
	}
	edits, err := s.edits(r, opts.Rewrite.Target)
	if err != nil {
		return r, err
	}
	m, err := onnx.Open(path)
	if err != nil {
		return r, err
	}
	defer m.Close()
	o := opts.Rewrite
	o.LayerEdits, o.Context = edits, s.context(edits)
	done, err := rewrite.Rewrite(ctx, m, o)
	if err != nil {
		return r, err
	}
	if err := s.mended(ctx, m, opts); err != nil {
		return r, err
	}
	if err := save(m); err != nil {
		return r, err
	}
	r.Repaired = done.Edits
	return r, nil
}

// mended audits the rewritten model.
func (s *subject) mended(ctx context.Context, m *onnx.Model, opts Options) error {
	seen, err := Look(ctx, m, opts.Rewrite)
	if err != nil {
		return err
	}
	again := &Report{}
	(&subject{claims: s.claims, survey: seen}).judge(again)
	for _, l := range again.Lines {
		if l.Verdict == Differs {
			return &RefusedError{fmt.Sprintf("after the rewrite %s of %s is still %s, but %s says %s", l.What, ranges.Layers(l.Where), l.Found, l.From, l.Expected)}
		}
	}
	return nil
}

// edits returns the methods that make the layers that differ compute what is claimed.
func (s *subject) edits(r *Report, target rewrite.Target) ([]rewrite.LayerEdit, error) {
	if s.survey.Fused {
		return nil, &RefusedError{"it was already rewritten; start from the original file"}
	}
	var reasons []string
	for _, l := range r.Lines {
		if why := unmendable(l, target); l.Verdict == Differs && why != "" {
			reasons = append(reasons, fmt.Sprintf("%s is %s but claimed to be %s: %s", l.What, l.Found, l.Expected, why))
		}
	}
	layers := map[string][]int{} // by the method
	specs := map[string]rope.Spec{}
	var order []string
	for i, at := range s.survey.Layers {
		for _, spec := range s.editsOf(at) {
			key := spec.Axis.String() + " " + spec.String()
			if layers[key] == nil {
				order = append(order, key)
			}
			layers[key], specs[key] = append(layers[key], i), spec
		}
	}
	if len(reasons) > 0 {
		return nil, &RefusedError{strings.Join(reasons, "; ")}
	}
	var edits []rewrite.LayerEdit
	for _, key := range order {
		which := layers[key]
		edits = append(edits, rewrite.LayerEdit{Spec: specs[key], Layers: func(i int) bool { return slices.Contains(which, i) }, Where: ranges.Layers(ranges.Text(which))})
	}
	if len(edits) == 0 && target == rewrite.PlainONNX {
		return nil, &RefusedError{"--target onnx cannot change it"}
	}
	return edits, nil
}

// unmendable says why what differs cannot be changed, "" where it can.
func unmendable(l Line, target rewrite.Target) string {
	if l.Why == Unsaid {
		return "no method can take it out. Export the model again"
	}
	switch l.What {
	case "rope_theta", "rope_scaling", "attention_factor":
		if l.Found == "no rotation" || l.Expected == "no rotation" {
			return "no method can add or remove the rotation of a layer"
		}
		return ""
	case "sliding_window":
		if l.Found == "none" {
			return ""
		}
		return "a mask cannot show keys that the graph hides. Export the model again"
	case "max_position_embeddings":
		if target != rewrite.PlainONNX && l.Found != "" {
			return "" // the op computes angles and reads no table
		}
		return "its tables are too short; leave --target onnx out"
	case "context_length", "max_length":
		return "two keys disagree; correct one of them"
	}
	return "no method can change it. Export the model again"
}

// editsOf returns the methods for one layer, none where it agrees.
func (s *subject) editsOf(at Layer) (specs []rope.Spec) {
	differs := map[string]bool{}
	for _, l := range s.lines(at) {
		differs[l.What] = differs[l.What] || l.Verdict == Differs
	}
	n := s.numbers(at)
	if differs["rope_theta"] || differs["rope_scaling"] || differs["attention_factor"] {
		layer := n.rotation.layer
		if !n.rotation.known {
			layer = n.base.layer
		}
		specs = append(specs, s.scaling(at, layer))
	}
	if differs["sliding_window"] {
		window := rope.Integer(s.claims.config.Window(n.window.layer).Spans(at.Attention.Mask.Causal)[0])
		specs = append(specs, rope.Spec{Axis: rope.MaskAxis, Name: "sliding-window", Params: map[string]rope.Value{"window": window}})
	}
	return specs
}

// scaling is the claimed scaling, on the claimed base.
func (s *subject) scaling(at Layer, layer int) rope.Spec {
	claim := s.claims.config.Rotation(layer)
	found, base := s.recognised(*at.Attention, layer)
	if claim.Theta.Given() {
		base = claim.Theta.Value
	}
	spec := modelconfig.ByRun(claim.Scaling)
	if spec.Name == "" {
		spec = rope.Spec{Axis: rope.ScalingAxis, Name: "theta"}
	}
	if base != 0 {
		spec = modelconfig.With(spec, "rope_theta", rope.Number(base))
	}
	if found.Name != "" {
		spec = modelconfig.With(spec, "base", rope.Text("original"))
	}
	return spec
}

// context is what the edits need to know of the model. A longer context than the
// trained one is told only where a scaling takes its factor from that.
func (s *subject) context(edits []rewrite.LayerEdit) rope.Context {
	c := s.claims.config.Context(0)
	for _, e := range edits {
		m, err := rope.Lookup(e.Spec.Axis, e.Spec.Name)
		takes := func(p rope.Param) bool { return p.Stretches && p.Default.Kind() == rope.Absent }
		if err == nil && slices.ContainsFunc(m.Params, takes) && e.Spec.Params["factor"].Kind() == rope.Absent {
			return c
		}
	}
	c.Length = 0
	return c
}
