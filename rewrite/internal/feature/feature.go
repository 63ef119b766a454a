package feature

import (
	"context"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/analysis"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/contrib"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/plan"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/sharedengine"
)

// Asked says which features are asked for.
type Asked struct {
	Documents     string                 // name of an int64 input [batch, past + length] to add; "" adds none
	Separator     *Separator             // counts document ids from the model's own tokens instead; nil does not
	FixedCapacity int64                  // tokens that a key-value cache of fixed capacity holds; 0 leaves the cache growing
	CacheType     string                 // element type of the cache: float16, bfloat16 or int8; "" leaves it
	CacheScales   map[int]contrib.Scales // fixed scales of the cache of each layer; nil where the op makes them
	CacheRing     bool                   // the buffers of layers with a window are rings
	CacheLength   string                 // name of the int32 input [batch] that goes with it
	LogitsPlaces  string                 // name of an int64 input [batch] that says of which tokens the logits are; "" leaves all
}

// LeaveAttention reports whether nothing is asked for that changes masks or caches.
func (a Asked) LeaveAttention() bool {
	return a.Documents == "" && a.Separator == nil && a.FixedCapacity == 0 && a.CacheType == ""
}

// Check refuses what the model cannot be given, before anything of it is run. frees says which inputs
// of the model will be taken out first, and opset is the version of the standard operators that it will have.
func (a Asked) Check(m *onnx.Model, frees func(string) bool, opset int64) error {
	for _, f := range []struct {
		what  string // as records have it
		check func(*onnx.Model, func(string) bool, int64) error
	}{{"documents", a.checkDocuments}, {"kv", a.checkCache}, {"logits", a.checkLastLogits}} {
		if err := f.check(m, frees, opset); err != nil {
			return plan.Of(f.what, err)
		}
	}
	return nil
}

// Subject is the model that features are made for.
type Subject struct {
	Model    *onnx.Model
	Analysis *analysis.Analysis
	Engine   *sharedengine.Engine
	Progress func(string) // may be nil
}

// Make makes the features that are asked for, after it has proven what they need of the model.
func Make(ctx context.Context, asked Asked, s Subject) (list []plan.Feature, _ error) {
	for _, of := range []struct {
		what string // as records have it
		make func(context.Context, Asked, Subject) (*plan.Feature, error)
	}{{"documents", documents}, {"kv", changedCache}, {"logits", lastLogits}} {
		f, err := of.make(ctx, asked, s)
		if err != nil {
			return nil, plan.Of(of.what, err)
		}
		if f != nil {
			list = append(list, *f)
		}
	}
	return list, nil
}

// batchOf is the batch as the graph's inputs name it.
func batchOf(g *onnx.Graph) onnx.Dim {
	for _, v := range g.Inputs {
		if v.HasShape && len(v.Shape) > 1 {
			return v.Shape[0]
		}
	}
	return onnx.Dim{Param: "batch"}
}

// freeName refuses the name of a new input that the graph has a value of.
func freeName(m *onnx.Model, frees func(string) bool, name, what, remedy string) error {
	if name == "" {
		return nil // none is added
	}
	taken := ir.Named(m.Graph.Outputs, name) != nil
	if !frees(name) { // an input, perhaps with a default
		taken = taken || ir.Named(m.Graph.Inputs, name) != nil || m.Graph.Initializer(name) != nil
	}
	for n := range m.Graph.AllNodes() {
		taken = taken || slices.Contains(n.Outputs, name)
	}
	if taken {
		return nameTaken(name, what, remedy)
	}
	return nil
}

func nameTaken(name, what, remedy string) error {
	return fmt.Errorf("the graph already has a value named %q; give the new input for %s another name (%s)", short.Name(name), what, remedy)
}
