package rewrite

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// shapeTable knows how sizes follow from batch, length and past: those that
// Shape nodes give, those of graph inputs and those of values asked for. It is
// measured by running a skeleton of the model in which every product with
// weights is replaced by something of the same shape.
type shapeTable struct {
	inputs map[string][]extent // dims of graph inputs
	sizes  map[string][]extent // outputs of Shape and Size nodes
	dims   map[string][]extent // dims of the values asked for
	past   bool                // the model has a cache
	fixed  point               // the sizes that the model always has; 0 for those that are free
	scales map[string]bool     // what queries and keys of the graph's sites are multiplied by (tokenScale)

	refused map[string]error // values that could not be measured because of what makes them
}

// maxReadings bounds how many readings of the input shapes are tried; three
// integer inputs whose dimensions have no names have 64.
const maxReadings = 256

const dimsSuffix = "/rope-rewrite/dims"

// measureShapes fills a table for all Shape nodes of the graph and for values.
func measureShapes(ctx context.Context, eng engine.Engine, g *graph, values []string) (*shapeTable, error) {
	sk := newSkeleton(g)
	var wanted []string
	blocked := sk.blocked()
	for _, n := range g.nodes {
		if standard(n, "Shape", "Size") && g.classes[n.Outputs[0]] == shapeClass && blocked[n] == nil {
			wanted = append(wanted, n.Outputs[0])
		}
	}
	refused := map[string]error{}
	for v, n := range g.producer {
		if err := blocked[n]; err != nil {
			refused[v] = err
		}
	}
	values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return refused[v] != nil })
	for _, v := range values {
		sk.need(v)
	}
	for _, w := range wanted {
		sk.need(w)
	}
	m := sk.model(values, wanted)
	load := loader{engine: eng}
	var outputs []string
	for _, o := range m.Graph.Outputs {
		outputs = append(outputs, o.Name)
	}
	session, err := load.session(ctx, m, outputs)
	if err != nil {
		return nil, fmt.Errorf("the model's skeleton does not load: %w", err)
	}
	defer session.Close()

	var failures []error
	for inputs := range inputRoles(g) {
		t := &shapeTable{inputs: inputs, sizes: map[string][]extent{}, dims: map[string][]extent{}, past: usesPast(inputs), refused: refused}
		err := t.sample(ctx, session, m, values, wanted)
		if err == nil {
			t.fix(g)
			return t, nil
		}
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
			errors.Is(err, engine.ErrTimeout) || errors.Is(err, engine.ErrDied) {
			return nil, err // another reading of the inputs would fare no better
		}
		if failures = append(failures, err); len(failures) == maxReadings {
			break
		}
	}
	if len(failures) == 0 {
		return nil, errors.New("the graph's inputs have shapes that no batch, length and past explain")
	}
	return nil, fmt.Errorf("ONNX Runtime runs the model's skeleton under none of %d readings of its input shapes, the first says: %w", len(failures), failures[0])
}

func usesPast(inputs map[string][]extent) bool {
	for _, dims := range inputs {
		for _, e := range dims {
			if e.P != 0 {
				return true
			}
		}
	}
	return false
}

// sample runs the skeleton at the sample points and fits every size.
func (t *shapeTable) sample(ctx context.Context, session engine.Session, m *onnx.Model, values, wanted []string) error {
	points := samplePoints(t.past)
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
		if err := bounded(m.Graph.Nodes, m.Graph.Initializers, feeds); err != nil {
			return err
		}
		outputs, err := session.Run(ctx, feeds)
		if err != nil {
			return err
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
		if fit, ok := fitAll(points, samples[w]); ok {
			t.sizes[w] = fit
		}
	}
	for _, v := range values {
		if fit, ok := fitAll(points, samples[v+dimsSuffix]); ok {
			t.dims[v] = fit
		}
	}
	return nil
}

// fitAll fits every element of a sampled shape; the rank must not change.
func fitAll(points []point, samples [][]int64) ([]extent, bool) {
	if len(samples) != len(points) {
		return nil, false
	}
	fit := make([]extent, len(samples[0]))
	for i := range fit {
		column := make([]int64, len(points))
		for k, s := range samples {
			if len(s) != len(fit) {
				return nil, false
			}
			column[k] = s[i]
		}
		var ok bool
		if fit[i], ok = fitExtent(points, column); !ok {
			return nil, false
		}
	}
	return fit, true
}

// fill makes a graph input of the table's shape with every element set to value.
func (t *shapeTable) fill(v *onnx.ValueInfo, pt point, value int64) (engine.Tensor, error) {
	dims, ok := t.inputs[v.Name]
	if !ok {
		return engine.Tensor{}, fmt.Errorf("the shape of input %q is not known", v.Name)
	}
	sizes := evaluate(dims, pt)
	elements, err := room(sizes)
	if err != nil {
		return engine.Tensor{}, fmt.Errorf("input %q: %w", v.Name, err)
	}
	return engine.Integers(v.Type, slices.Repeat([]int64{value}, int(elements)), sizes...)
}

func evaluate(dims []extent, pt point) []int64 {
	out := make([]int64, len(dims))
	for i, e := range dims {
		out[i] = e.at(pt)
	}
	return out
}
