package again_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

func marshalled(t *testing.T, m *onnx.Model) []byte {
	t.Helper()
	data, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// After an error the model is as it was, whichever stage the error comes from.
func TestModelIsUnchangedAfterAnError(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	plain := kit.Model("llama__dynamo18")
	patched, _ := kit.Patch(t, plain, rewrite.Options{Documents: rewrite.Documents{Input: "ids"}, Edits: []rope.Spec{kit.Spec(t, rope.MaskAxis, "anchor")}})
	yarn := []rope.Spec{kit.Spec(t, rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=16")}
	for name, c := range map[string]struct {
		path string
		opts rewrite.Options
	}{
		"an unknown target, converted":             {plain, rewrite.Options{Target: "nowhere", Output: rewrite.Output{OperatorSet: 20}}},
		"a method of a layer too many":             {plain, rewrite.Options{Output: rewrite.Output{OperatorSet: 20}, LayerEdits: []rewrite.LayerEdit{{Spec: yarn[0], Layers: func(i int) bool { return i == 9 }, Where: "layer 9"}}}},
		"a method that lacks a parameter":          {plain, rewrite.Options{Output: rewrite.Output{OperatorSet: 20}, Edits: []rope.Spec{kit.Spec(t, rope.PositionsAxis, "string")}}},
		"a rewritten model, no method":             {patched, rewrite.Options{}},
		"a rewritten model, its documents missing": {patched, rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.MaskAxis, "anchor")}}},
	} {
		m := kit.OpenModel(t, c.path)
		before := marshalled(t, m)
		if _, err := kit.Rewrite(context.Background(), m, c.opts); err == nil || errors.Is(err, rewrite.ErrPartial) {
			t.Errorf("%s: error %v", name, err)
		}
		if !bytes.Equal(before, marshalled(t, m)) {
			t.Errorf("%s: the model was changed", name)
		}
	}
}

// A plan says of each layer what a rewrite makes of it, and changes nothing. Inspect changes nothing either.
func TestPlanOnly(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for name, opts := range map[string]rewrite.Options{
		"the op":    {Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=16")}},
		"own nodes": {Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=2")}, Target: rewrite.PlainONNX},
		"inlined":   {Edits: []rope.Spec{kit.Spec(t, rope.PositionsAxis, "string:shift=24,window=8")}, Target: rewrite.PlainONNX},
		"contrib":   {Target: rewrite.Contrib, Context: rope.Context{Length: 64}},
	} {
		m := kit.OpenModel(t, kit.Model("llama__optimum"))
		before := marshalled(t, m)
		if _, err := rewrite.Inspect(t.Context(), m, rewrite.Options{}); err != nil || !bytes.Equal(before, marshalled(t, m)) {
			t.Errorf("%s: inspecting: error %v, or the model was changed", name, err)
		}
		opts.PlanOnly = true
		planned, err := kit.Rewrite(t.Context(), m, opts)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.Equal(before, marshalled(t, m)) {
			t.Errorf("%s: the model was changed", name)
		}
		opts.PlanOnly = false
		done, err := kit.Rewrite(t.Context(), m, opts)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(planned.Sites, done.Sites) + cmp.Diff(planned.Edits, done.Edits) + cmp.Diff(planned.Record, done.Record); diff != "" {
			t.Errorf("%s: the rewrite differs from its plan: %s", name, diff)
		}
		if bytes.Equal(before, marshalled(t, m)) {
			t.Errorf("%s: the rewrite changed nothing", name)
		}
	}
}
