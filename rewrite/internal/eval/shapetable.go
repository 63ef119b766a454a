package eval

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bound"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// TotalOf is the number of keys: past + length, or length in a model without a cache.
func TotalOf(t *ShapeTable) dim.Extent {
	if t.Past {
		return dim.TotalExtent
	}
	return dim.LengthExtent
}

// ShapeTable says how sizes follow from batch, length, past and source: those that Shape nodes
// give, those of graph inputs and those of the values that were asked for. MeasureShapes
// makes it.
type ShapeTable struct {
	Inputs map[string][]dim.Extent // shapes of graph inputs
	Sizes  map[string][]dim.Extent // contents of the outputs of Shape and Size nodes
	Dims   map[string][]dim.Extent // shapes of the values that were asked for
	Past   bool                    // the model has a cache
	Source bool                    // the model reads another text, of a length of its own
	Static dim.Point               // the static sizes of the model; 0 for those that are open
	Slots  *Slots                  // how caches of fixed size are written; nil where they grow
	Scales map[string]bool         // values that the site's queries and keys are multiplied by, one number for each token

	Refused map[string]error // values that could not be measured because of what makes them
}

// maxReadings is the largest number of readings of the input shapes that are tried;
// three integer inputs whose dimensions have no names have 64.
const maxReadings = 256

// dimsSuffix names the shape of a value.
const dimsSuffix = "/rope-rewrite/dims"

// MeasureShapes returns the table for all Shape nodes of the graph and for values. Where
// ONNX Runtime runs the model's skeleton under no reading of the input shapes, it is tried
// without the layers that the values are not in; the table then has the sizes that the
// values are computed from, and no others. It is an error if that does not run either.
func MeasureShapes(ctx context.Context, eng engine.Engine, g *graph.Graph, values []string) (*ShapeTable, error) {
	t, err := newSkeleton(g).measure(ctx, eng, values)
	if err == nil || bisect.Ended(err) {
		return t, err
	}
	part := newSkeleton(g)
	if part.residuals = residuals(g); len(part.residuals) == 0 {
		return nil, err
	}
	if t, partErr := part.measure(ctx, eng, values); partErr == nil {
		return t, nil
	}
	return nil, err
}

// measure runs the skeleton of what is asked for.
func (sk *skeleton) measure(ctx context.Context, eng engine.Engine, values []string) (*ShapeTable, error) {
	g := sk.graph
	blocked := sk.blocked()
	refused := map[string]error{}
	for v, n := range g.Producer {
		if err := blocked[n]; err != nil {
			refused[v] = err
		}
	}
	values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return refused[v] != nil })
	for _, v := range values {
		sk.need(v)
	}
	var wanted []string
	for _, n := range g.Nodes {
		if ir.Standard(n, "Shape", "Size") && g.Classes[n.Outputs[0]] == graph.ShapeClass && blocked[n] == nil && (sk.residuals == nil || sk.needed[n]) {
			wanted = append(wanted, n.Outputs[0])
		}
	}
	for _, w := range wanted {
		sk.need(w)
	}
	for _, n := range g.Nodes { // what a Slice may cut is computed anyway
		if ir.Standard(n, "Slice") && sk.needed[n] && g.Classes[n.Inputs[0]] > graph.ConstantClass {
			values = append(values, n.Inputs[0])
		}
	}
	values = ir.Unique(values)
	m := sk.model(values, wanted)
	load := Loader{Engine: eng}
	var outputs []string
	for _, o := range m.Graph.Outputs {
		outputs = append(outputs, o.Name)
	}
	session, err := load.Session(ctx, m, outputs)
	if err != nil {
		return nil, fmt.Errorf("the model without its weights does not load: %w", err)
	}
	defer session.Close()

	var failures []error
	var first map[string][]dim.Extent
	for inputs := range inputRoles(g) {
		t := &ShapeTable{Inputs: inputs, Sizes: map[string][]dim.Extent{}, Dims: map[string][]dim.Extent{}, Past: usesPast(inputs), Refused: refused}
		err := t.sample(ctx, session, m, values, wanted)
		if err == nil {
			if t, err = t.withSource(ctx, g, session, m, values, wanted); err != nil {
				return nil, err
			}
			t.findStatic(g)
			return t, nil
		}
		if ends(err) {
			return nil, err // another reading of the inputs would fare no better
		}
		if failures = append(failures, err); len(failures) == maxReadings {
			break
		} else if first == nil {
			first = inputs
		}
	}
	if len(failures) == 0 {
		return nil, errors.New("no batch, length and past give the shapes of the graph's inputs")
	}
	return nil, fmt.Errorf("ONNX Runtime cannot run the model without its weights under any of %d interpretations of its input shapes; the first takes %s, and ends: %w", len(failures), readAs(g, first), failures[0])
}

// ends reports whether an error is none of the model's.
func ends(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, engine.ErrTimeout) || errors.Is(err, engine.ErrDied)
}

// usesPast reports whether a dimension of the inputs follows the past.
func usesPast(inputs map[string][]dim.Extent) bool {
	for _, dims := range inputs {
		for _, e := range dims {
			if e.P != 0 {
				return true
			}
		}
	}
	return false
}

// sample runs the skeleton at the sample points and fills in the sizes that follow from
// batch, length and past.
func (t *ShapeTable) sample(ctx context.Context, session engine.Session, m *onnx.Model, values, wanted []string) error {
	points := dim.SamplePoints(t.Past, t.Source)
	samples := map[string][][]int64{}
	for _, pt := range points {
		feeds := map[string]engine.Tensor{}
		for _, v := range m.Graph.Inputs {
			feed, err := t.fill(v, pt, 1)
			if err != nil {
				return err
			}
			feeds[v.Name] = feed
		}
		if err := bound.Check(m.Graph.Nodes, m.Graph.Initializers, feeds); err != nil {
			return err
		}
		outputs, err := session.Run(ctx, feeds)
		if err != nil {
			return fmt.Errorf("with %v: %w", pt, err)
		}
		for name, o := range outputs {
			var row []int64
			for _, x := range o.Values() {
				row = append(row, int64(x))
			}
			samples[name] = append(samples[name], row)
		}
	}
	for _, w := range wanted {
		if fit, ok := dim.FitAll(points, samples[w]); ok {
			t.Sizes[w] = fit
		}
	}
	for _, v := range values {
		if fit, ok := dim.FitAll(points, samples[v+dimsSuffix]); ok {
			t.Dims[v] = fit
		}
	}
	return nil
}

// fill returns a graph input of the table's shape with every element set to value.
func (t *ShapeTable) fill(v *onnx.ValueInfo, pt dim.Point, value int64) (engine.Tensor, error) {
	dims, ok := t.Inputs[v.Name]
	if !ok {
		return engine.Tensor{}, fmt.Errorf("the shape of input %q is not known", short.Name(v.Name))
	}
	if t.Slotted() && v.Name == t.Slots.Input.Name {
		return t.Places(pt.L, pt.P)
	}
	sizes := dim.Evaluate(dims, pt)
	elements, err := bound.Elements(sizes)
	if err != nil {
		return engine.Tensor{}, fmt.Errorf("input %q: %w", short.Name(v.Name), err)
	}
	return engine.Integers(v.Type, slices.Repeat([]int64{value}, int(elements)), sizes...)
}

// InOneCall returns the table of calls without a past: each of their tokens is a new one.
func (t *ShapeTable) InOneCall() *ShapeTable {
	once := *t
	without := func(dims map[string][]dim.Extent) map[string][]dim.Extent {
		out := map[string][]dim.Extent{}
		for name, list := range dims {
			list = slices.Clone(list)
			for i := range list {
				list[i].P, list[i].BP = 0, 0
			}
			out[name] = list
		}
		return out
	}
	once.Inputs, once.Sizes, once.Dims, once.Past = without(t.Inputs), without(t.Sizes), without(t.Dims), false
	return &once
}
