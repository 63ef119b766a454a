package validate

import (
	"context"
	"errors"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// Fallback says what is known of the fallback that a model carries.
type Fallback struct {
	Unknown []string `json:"unknown"` // functions that no version of rope-rewrite is known to have written

	// Of unknown functions: whether each, run on a few tokens, gives what its op gives; else Differs,
	// with what it is off by in Why, or Why one could not be run.
	Agrees  bool   `json:"agrees"`
	Differs bool   `json:"differs"`
	Why     string `json:"why,omitempty"`
}

// compareFallback looks at the fallback of a patched model that is not confirmed otherwise.
func (v *validation) compareFallback(ctx context.Context) error {
	r := v.result
	if r.Rebuilt.confirmed() || r.Rebuilt.altered() {
		return nil
	}
	m, err := onnx.Open(v.patched)
	if err != nil {
		return err
	}
	defer m.Close()
	v.clock.say("looking at the fallback")
	unknown, err := rewrite.UnknownFallback(ctx, m, machine(v.opts.Rewrite))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if unknown == nil {
		return nil
	}
	r.Fallback = &Fallback{Unknown: unknown, Agrees: err == nil, Differs: errors.Is(err, rewrite.ErrOtherFallback)}
	if err != nil {
		r.Fallback.Why = err.Error()
	}
	return nil
}
