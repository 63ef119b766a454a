package backend

import (
	"context"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fallback"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/plan"
)

// ops replaces sites by the fused op.
type ops struct{}

func (*ops) Accepts(setting string, _ Options) error {
	if setting != "" {
		return unknown("ops:" + setting)
	}
	return nil
}

func (*ops) Form(_ context.Context, j Job) error {
	j.Plan.LeaveUnchanged(j.Model, j.Analysis, func(*plan.Site, error) bool { return false })
	for _, s := range j.Plan.Sites {
		if err := bind(s); err != nil {
			return fmt.Errorf("layer %d: %w", s.Layer, err)
		}
	}
	if err := j.Plan.AddExtras(); err != nil {
		return err
	}
	for _, s := range j.Plan.Sites {
		if err := lowerToOp(s); err != nil {
			return fmt.Errorf("layer %d: %w", s.Layer, err)
		}
	}
	return nil
}

// bind binds a site to the op that it becomes.
func bind(s *plan.Site) (err error) {
	if s.Measured.Rotated != nil {
		s.Form = lower.Rotary
	}
	if s.Written != nil {
		s.Binding = s.Written.Binding(s.Measured.Mask)
	} else if s.Binding, err = lower.Bind(s.Site, s.Measured); err != nil {
		return err
	} else if s.Binding, err = s.Binding.InModel(s.Site); err != nil {
		return err
	}
	s.Binding.Precision = s.Precision
	return nil
}

// lowerToOp replaces a bound site by the fused op.
func lowerToOp(s *plan.Site) error {
	nodes, constants, err := lower.Nodes(s.Binding, s.Want, s.Extra)
	s.Change = s.Becomes(nodes, constants)
	return err
}

func (*ops) Write(ctx context.Context, j Job) (w Written, err error) {
	if err := j.apply(); err != nil {
		return w, err
	}
	if err := j.features(); err != nil || j.NoFallback {
		return w, err
	}
	w.Fallback, err = fallback.Write(ctx, j.Model, j.Plan.Sites, j.Engine)
	if err == nil && w.Fallback != nil && w.Fallback.Reason != "" {
		w.Warnings = append(w.Warnings, "the model has no fallback for its op, so it runs only where the op library is registered: "+w.Fallback.Reason)
	}
	return w, err
}

// apply puts the ops into the model.
func (j Job) apply() error {
	var changes []lower.Change
	for _, s := range j.Plan.Sites {
		if s.Form != lower.OwnNodes {
			changes = append(changes, s.Change)
		}
	}
	return lower.Apply(j.Model, changes)
}
