package backend

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/analysis"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fallback"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/plainonnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/plan"
)

// plain writes sites in standard ONNX operators. Where the model's own attention can
// be changed at a constant cost, that is done: other constants of its rotation, keys hidden
// before its softmax. Everywhere else the fallback is inlined.
type plain struct{}

func (*plain) Accepts(setting string, o Options) error {
	if setting != "" {
		return unknown("onnx:" + setting)
	}
	if o.Precision != "" {
		return fmt.Errorf("--precision %s needs the op, but --target onnx writes standard operators, which round as their types do; drop --precision or --target", o.Precision)
	}
	return nil
}

// Form decides for each site how it is written, and binds those that are inlined.
func (b *plain) Form(_ context.Context, j Job) error {
	for before := -1; before != len(j.Plan.Sites); { // constants may be shared with a site that is left unchanged
		if before = len(j.Plan.Sites); before == 0 {
			break
		}
		if err := b.forms(j); err != nil {
			return err
		}
		j.Plan.LeaveUnchanged(j.Model, j.Analysis, func(s *plan.Site, why error) bool {
			if s.Form == lower.Inlined || takesBody(j, s) != nil {
				return false
			}
			s.Form, s.FormReason = lower.Inlined, why.Error()
			return true
		})
	}
	if err := j.Plan.AddExtras(); err != nil {
		return err
	}
	for _, s := range j.Plan.Sites {
		s.Change = s.Becomes(nil, nil)
		if s.Form != lower.Inlined {
			continue
		}
		if err := lowerToOp(s); err != nil {
			return fmt.Errorf("layer %d: %w", s.Layer, err)
		}
	}
	return nil
}

// forms decides for each site how it is written.
func (*plain) forms(j Job) error {
	var changed []*plan.Site
	for _, s := range j.Plan.Sites {
		s.Form, s.FormReason = lower.OwnNodes, ""
		if s.Written != nil {
			if err := takesBody(j, s); err != nil {
				return &plan.LayerError{Layer: s.Layer, Err: fmt.Errorf("the op cannot be inlined in its place: %w", err)}
			}
			s.Form, s.FormReason = lower.Inlined, "an earlier rewrite wrote the op there"
		} else if j.becomesAnother(s) {
			changed = append(changed, s)
		}
	}
	for i, err := range plainonnx.Refused(j.Model, layers(changed)) {
		switch {
		case j.Capacity > 0:
			err = errors.New("a cache of fixed capacity is to be written")
		case j.Retyped:
			err = errors.New("a cache of another type is to be written")
		}
		if err == nil {
			continue
		}
		s := changed[i]
		if cannot := takesBody(j, s); cannot != nil {
			return &plan.LayerError{Layer: s.Layer, Err: fmt.Errorf("its own nodes cannot be changed (%w), and the op cannot be inlined in their place (%w)", err, cannot)}
		}
		s.Form, s.FormReason = lower.Inlined, err.Error()
	}
	return nil
}

// becomesAnother reports whether a site is to become something else.
func (j Job) becomesAnother(s *plan.Site) bool { return j.Capacity > 0 || j.Retyped || s.Changes() }

// layers are sites as plainonnx takes them.
func layers(sites []*plan.Site) (list []plainonnx.Layer) {
	for _, s := range sites {
		list = append(list, plainonnx.Layer{Attention: s.Attention, Number: s.Layer, Want: s.Want, Documents: s.Extra.Documents, Specs: s.Specs, Known: s.Known})
	}
	return list
}

// takesBody binds a site whose fallback is to be inlined, or says
// why it cannot.
func takesBody(j Job, s *plan.Site) error {
	if s.Measured.RotationOnly {
		return fmt.Errorf("only its rotation could be measured (%s)", s.Reason)
	}
	if err := definition.Serves(j.Model.Opset(""), s.Scope.View.Element(s.Site.Query.Boundary)); err != nil {
		return err
	}
	if why := j.Analysis.OpUnfit[s.Index]; why != "" && s.Written == nil {
		return errors.New(why)
	}
	return bind(s)
}

// Write changes the sites' own nodes first: the model is measured again to see that they
// rotate as wanted, and ops would not be found then.
func (*plain) Write(ctx context.Context, j Job) (w Written, err error) {
	var own, inlined []*plan.Site
	var bodies []lower.Change
	for _, s := range j.Plan.Sites {
		switch {
		case s.Form == lower.Inlined:
			inlined, bodies = append(inlined, s), append(bodies, s.Change)
		case j.becomesAnother(s):
			own = append(own, s)
			if s.Site.Rounded {
				w.Warnings = append(w.Warnings, "query and key are rounded to 8 bits after the rotation, with ranges measured for the old angles. A channel may become up to √2 times as large, times the scaling's gain, and is then clipped. rope-rewrite eval shows the effect; scaling the model before it is quantised avoids it")
			}
		}
	}
	if err := writeOwn(ctx, j, own); err != nil {
		return w, err
	}
	if err := ir.Order(j.Model.Graph); err != nil {
		return w, err
	}
	if len(bodies) > 0 {
		if err := lower.Apply(j.Model, bodies); err != nil {
			return w, err
		}
	}
	if err := j.features(); err != nil || len(inlined) == 0 {
		return w, err
	}
	for _, s := range inlined {
		if s.Written == nil {
			tellCacheSizes(s, j.Model.Graph)
		}
	}
	if err := fallback.Inline(ctx, j.Model, j.Plan.Sites, j.Engine); err != nil {
		if ctx.Err() != nil {
			return w, ctx.Err()
		}
		return w, fmt.Errorf("the target onnx: %w", err)
	}
	return w, nil
}

// writeOwn changes the sites' own nodes.
func writeOwn(ctx context.Context, j Job, sites []*plan.Site) error {
	half := map[int]bool{}
	for _, s := range sites {
		half[s.Index] = s.Measured.RotationOnly
	}
	err := plainonnx.Write(ctx, j.Model, layers(sites), func(ctx context.Context, m *onnx.Model) (map[int]*measure.Measured, func(int) string, error) {
		return analysis.MeasureAgain(ctx, m, j.Engine, j.Analysed, half)
	})
	if layer := (*plainonnx.LayerError)(nil); errors.As(err, &layer) {
		return &plan.LayerError{Layer: layer.Layer, Err: layer.Err}
	}
	return err
}

// tellCacheSizes gives the graph's inputs of a site's cache [batch, kv heads, tokens, head
// size] the sizes that they leave open. Fused ops tell them elsewhere; standard ones do not.
func tellCacheSizes(s *plan.Site, g *onnx.Graph) {
	layouts := s.Measured.Layouts
	if s.Scope.Where != "" || s.Measured.Latent != nil || !layouts.KeyCached.Canonical() {
		return // no such inputs
	}
	for name, channels := range map[string]int64{s.Binding.PastKey: layouts.Key.Channels, s.Binding.PastValue: layouts.Value.Channels} {
		i := slices.IndexFunc(g.Inputs, func(v *onnx.ValueInfo) bool { return v.Name == name && len(v.Shape) == 4 })
		if i < 0 {
			continue
		}
		v := g.Inputs[i].Clone()
		for axis, size := range map[int]int64{1: layouts.Key.Heads, 3: channels} {
			if !v.Shape[axis].Known() {
				v.Shape[axis] = onnx.Dim{Value: size}
			}
		}
		g.Inputs[i] = v
	}
}
