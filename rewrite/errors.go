package rewrite

import (
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fallback"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/feature"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/plan"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/sharedengine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// ErrNoAttention says that a model has no rotary attention.
var ErrNoAttention = site.ErrNoAttention

// ErrPartial says that some attention layers could not be rewritten as asked for.
var ErrPartial = errors.New("not every attention layer could be rewritten")

// ErrLimited says that verified layers are known to be equal up to some number of tokens alone (Report.Reach), where
// Options.AnyLength asks for more.
var ErrLimited = errors.New("not every attention layer is known for any number of tokens")

// ErrMemory says that the work needs more memory than Options.Evaluation.Memory allows.
var ErrMemory = sharedengine.ErrMemory

// ErrForeignFallback says that a model has a function of its own for the op, which computes
// something else.
var ErrForeignFallback = fallback.ErrForeign

// EditError says that a method does not fit what was measured, or lacks a parameter.
type EditError struct {
	Layer int // WholeModel if it concerns no single layer
	Err   error

	// What says which request does not fit, in the words of a record ("scaling", "documents"), Given which method,
	// and Where for which layers, if these do not fit. What is not known, or no method's, is "".
	What, Given, Where string
}

// unfit is an EditError that tells what err tells of the request.
func unfit(layer int, err error) *EditError {
	e := &EditError{Layer: layer, Err: err}
	if asked := (*plan.AskedError)(nil); errors.As(err, &asked) {
		e.What, e.Given, e.Where = asked.What, asked.Given, asked.Where
	}
	return e
}

// WholeModel is the Layer of an error that concerns all layers.
const WholeModel = plan.WholeModel

func (e *EditError) Error() string {
	if e.Layer == WholeModel {
		return e.Err.Error()
	}
	return fmt.Sprintf("layer %d: %v", e.Layer, e.Err)
}

func (e *EditError) Unwrap() error { return e.Err }

// partialError is an ErrPartial with another text.
type partialError struct{ error }

func (e partialError) Is(target error) bool { return target == ErrPartial }

// public returns an error of a stage as callers see it.
func public(err error) error {
	var layer *plan.LayerError
	var unchanged *feature.UnchangedError
	switch {
	case errors.As(err, &layer):
		e := unfit(layer.Layer, err)
		e.Err = layer.Err
		return e
	case errors.As(err, &unchanged):
		return partialError{unchanged}
	}
	return err
}
