package measure

import (
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// A site has two halves, which may be known separately: how query and key are rotated
// (RotationOnly), and what their product becomes (Turned). Each half takes some methods.

// RotationRefusal says that a site cannot be measured because of the rotation of query and key, or
// of what follows it. Nothing else of the site was refused so far.
type RotationRefusal struct{ error }

// Unwrap returns the refusal.
func (r RotationRefusal) Unwrap() error { return r.error }

// Allows returns an error for methods that need the half of a site that is not known. why is
// the reason, for its text.
func (m *Measured) Allows(specs []rope.Spec, why string) error {
	for _, s := range specs {
		switch {
		case m.RotationOnly && s.Axis != rope.ScalingAxis:
			return fmt.Errorf("only its rotation is known, so %s %s is not possible: only frequencies and gain can be changed: %s", s.Axis, s, why)
		case m.Turned && s.Axis != rope.MaskAxis:
			return fmt.Errorf("its queries and keys are rotated by the model's own nodes, so %s %s is not possible: only masks and caches can be changed: %s", s.Axis, s, why)
		}
	}
	return nil
}

// Keeps returns an error where an edited attention, or a cache of un-rotated keys (raw), asks for
// another position of a token than the model's own nodes rotated it by, or than they give it.
func (m *Measured) Keeps(want rope.Attention, raw bool) error {
	moves := want.Mask.Restart || len(want.Bands) > 0 || want.Drawn.Range > 0 || raw || want.Cache == rope.Raw
	if c := m.Computed; c != nil && c.Unlike != "" && moves {
		return fmt.Errorf("the graph computes its positions (%q), and %s. Scalings are possible; position maps, caches of un-rotated keys and masks that move tokens are not", short.Name(c.Value), c.Unlike)
	}
	if m.Turned && (want.Mask.Restart || len(want.Bands) > 0 || raw) {
		return errors.New("its queries and keys are rotated by the model's own nodes, so tokens keep their positions there: masks that move them, and caches of un-rotated keys, are not possible")
	}
	return nil
}
