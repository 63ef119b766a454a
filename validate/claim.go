package validate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/ranges"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
	"github.com/rope-rewrite/rope-rewrite/validate/capture"
)

// Claim compares a patched model with what its record says that it computes: each layer's output
// with a float64 reference of the layer's method, on the query, key and value that the layer read.
type Claim struct {
	Methods []provenance.Edit `json:"methods"` // methods that the original does not have
	Changes bool              `json:"changes"` // the original has other methods, or none
	Layers  []Layer           `json:"layers"`
	Holds   bool              `json:"holds"` // every compared layer computes its method, and the ops are those of the record
}

// whole reports whether every layer that has one of the methods was compared.
func (c *Claim) whole() bool {
	for _, m := range c.Methods {
		for _, layer := range m.Layers {
			if !slices.ContainsFunc(c.Layers, func(l Layer) bool { return l.Layer == layer }) {
				return false
			}
		}
	}
	return len(c.Layers) > 0
}

// Layer is one attention layer of a Claim.
type Layer struct {
	Layer int     `json:"layer"`
	Node  string  `json:"node"`
	Shape []int   `json:"shape"` // of the output: batch, heads, length, value size
	Error float64 `json:"error"` // root mean square of the difference from the reference
	Plain float64 `json:"plain"` // the same of a plain implementation, rounded to the output's type
	Holds bool    `json:"holds"` // the error is at most twice that of the plain one
	Worst Worst   `json:"worst"`
}

// Worst is the number with the largest error.
type Worst struct {
	Row, Head, Token, Channel int
	Position                  int64
	Got, Want                 float64
}

// claim compares layer by layer. Of a model without ops, written for other hosts, it compares what
// the op would compute in the original, rewritten anew.
func (v *validation) claim(ctx context.Context, c *Claim) error {
	path, options := v.patched, capture.Options{Rewrite: machine(v.opts.Rewrite)}
	m, err := onnx.Open(path)
	if err != nil {
		return err
	}
	_, _, err = rewrite.ReadOps(m)
	m.Close()
	switch {
	case v.record.OpSpec == 0:
		path = v.original
		if options.Rewrite, err = v.again(rewrite.Ops); err != nil {
			return err
		}
	case err != nil: // its ops are not even those of the record
		c.Holds = false
		v.note(fmt.Sprintf("Not compared: all layers: %v.", err))
		return nil
	}
	model, err := capture.Open(ctx, path, options)
	if err != nil {
		return err
	}
	defer model.Close()
	var reasons []string // why layers are not compared; many share one
	var layers []int
	skip := func(layer int, reason string) {
		reasons, layers = append(reasons, reason), append(layers, layer)
	}
	for _, k := range model.Skipped {
		skip(k.Layer, k.Reason)
	}
	length := cmp.Or(model.Length, min(v.sequences[0].Length, DefaultLength))
	in := model.Random(length, 17)
	if keepsFirst(v.record) {
		withoutPadding(length, in.Mask, in.Positions)
	}
	run, err := model.Run(ctx, in)
	if err != nil {
		return err
	}
	for _, l := range run.Layers {
		claimed, err := claimedBy(v.record, l.Layer, l.Attention)
		if err != nil {
			skip(l.Layer, fmt.Sprintf("its record cannot be computed again: %v", err))
			continue
		}
		if claimed.Mask.Padding && l.KeyMask == nil && !model.LengthTracked && !claimed.Cross {
			for _, real := range in.Mask { // the op does not read what the original did
				l.KeyMask = append(l.KeyMask, real != 0)
			}
		}
		if claimed.Drawn.Range > 0 { // the op reads positions that were drawn already
			if l.Positions = nil; model.TakesPositions() {
				l.Positions = in.Positions
			}
		}
		checked, err := compareLayer(l, claimed, v.result.Fast)
		if err != nil {
			return fmt.Errorf("layer %d: %w", l.Layer, err)
		}
		c.Layers = append(c.Layers, checked)
		c.Holds = c.Holds && checked.Holds
	}
	reasons, of := ranges.Together(reasons, layers)
	for i, reason := range reasons {
		v.note(fmt.Sprintf("Not compared: %s: %s.", ranges.Layers(of[i]), reason))
	}
	return nil
}

// methods are the edits of a record that change what the model computes.
func methods(r *provenance.Record) (list []provenance.Edit) {
	if r == nil {
		return nil
	}
	for _, e := range r.Edits {
		if _, changes := axisOf(e); changes {
			list = append(list, e)
		}
	}
	return list
}

// axisOf is the axis of an edit that changes what the model computes.
func axisOf(e provenance.Edit) (rope.Axis, bool) {
	for _, axis := range []rope.Axis{rope.ScalingAxis, rope.PositionsAxis, rope.MaskAxis} {
		if e.What == axis.String() {
			return axis, true
		}
	}
	return 0, false
}

// claimedBy is what a layer computes by the record: what was measured of the original, with the
// recorded methods. What the record does not tell, such as how the cache stands, is the node's.
func claimedBy(r *provenance.Record, layer int, now rope.Attention) (rope.Attention, error) {
	at := slices.IndexFunc(r.Sites, func(s provenance.Site) bool { return slices.Contains(s.Layers, layer) })
	if at < 0 {
		return now, fmt.Errorf("the record does not have this layer")
	}
	a := r.Sites[at].Original
	exact := a.Encoding.ExactAngles
	var specs []rope.Spec
	for _, e := range r.Edits {
		exact = exact || e.What == "angles" && slices.Contains(e.Layers, layer)
		axis, changes := axisOf(e)
		if !changes || !slices.Contains(e.Layers, layer) {
			continue
		}
		spec, err := rope.ParseSpec(axis, e.Given)
		if err != nil {
			return now, err
		}
		if spec.Params == nil {
			spec.Params = map[string]rope.Value{}
		}
		for _, s := range e.Settings {
			if s.From != rope.FromContext && s.From != rope.Configuration {
				continue
			}
			// Through its text: JSON does not tell an integer from another number, parameters do.
			one, err := rope.ParseSpec(axis, spec.Name+":"+s.Name+"="+s.Value.String())
			if err != nil {
				return now, err
			}
			spec.Params[s.Name] = one.Params[s.Name]
		}
		specs = append(specs, spec)
	}
	slices.SortStableFunc(specs, rope.CompareOrder)
	for _, spec := range specs {
		var err error
		if a, _, err = spec.Apply(a, rope.Context{Original: r.Configuration.Trained}); err != nil {
			return now, err
		}
	}
	// Whether angles are exact is no method, but the reference has to know it.
	precision := now.Encoding.Precision
	now.Encoding, now.Bands, now.Chunk, now.Drawn = a.Encoding, a.Bands, a.Chunk, a.Drawn
	now.Encoding.Precision, now.Encoding.ExactAngles = precision, exact
	now.Scale, now.Softcap, now.Temperature = a.EffectiveScale(), a.Softcap, a.Temperature
	padding, bias := now.Mask.Padding, now.Mask.Bias
	now.Mask = a.Mask
	now.Mask.Padding, now.Mask.Bias = padding || a.Mask.Padding, bias
	return now, nil
}

// compareLayer runs the reference of what is claimed on what the layer read. A fast layer in float32 may
// be as far from it as a plain implementation on numbers that were rounded to bfloat16.
func compareLayer(l capture.Layer, claimed rope.Attention, fast bool) (Layer, error) {
	p := l.Problem
	p.Attention = claimed
	want, err := ref.Run(p)
	if err != nil {
		return Layer{}, err
	}
	read := p
	if fast {
		read.Query, read.Key, read.Value = rounded(p.Query), rounded(p.Key), rounded(p.Value)
	}
	plain, err := ref.RunFloat32(read)
	if err != nil {
		return Layer{}, err
	}
	if len(l.Output) != len(want.Output) {
		return Layer{}, fmt.Errorf("its output has %d numbers, but its method gives %d", len(l.Output), len(want.Output))
	}
	size := len(want.Output) / (p.Batch * claimed.Heads * p.Length)
	c := Layer{Layer: l.Layer, Node: l.Node, Shape: []int{p.Batch, claimed.Heads, p.Length, size}}
	precision := typeOf(l.Output)
	worst := -1.0
	count := 0.0
	for i, got := range l.Output {
		token := i / size % p.Length
		row := i / (size * p.Length * claimed.Heads)
		if p.KeyMask != nil && !claimed.Cross && !fed(p, row, token) {
			continue // the output of padding is not defined
		}
		count++
		off := got - want.Output[i]
		c.Error += off * off
		by := precision.Round(plain.Output[i]) - want.Output[i]
		c.Plain += by * by
		if math.Abs(off) > worst {
			worst = math.Abs(off)
			c.Worst = Worst{Row: row, Head: i / (size * p.Length) % claimed.Heads, Token: token, Channel: i % size, Got: got, Want: want.Output[i], Position: int64(token)}
			if p.Positions != nil {
				c.Worst.Position = p.Positions[row*p.Length+token]
			}
		}
	}
	c.Error, c.Plain = math.Sqrt(c.Error/max(count, 1)), math.Sqrt(c.Plain/max(count, 1))
	c.Holds = c.Error <= 2*c.Plain
	return c, nil
}

// rounded are numbers as bfloat16 has them.
func rounded(numbers []float64) []float64 {
	out := make([]float64, len(numbers))
	for i, x := range numbers {
		out[i] = rope.BFloat16.Round(x)
	}
	return out
}

// fed reports whether a new token is no padding.
func fed(p ref.Problem, row, token int) bool {
	past := p.Past
	if p.Pasts != nil {
		past = p.Pasts[row]
	}
	width := len(p.KeyMask) / p.Batch
	return p.KeyMask[row*width+past+token]
}

// typeOf is the narrowest type that holds all numbers as they are: an output of 16 bits was
// rounded, whatever type it comes in.
func typeOf(numbers []float64) rope.Precision {
	for _, p := range []rope.Precision{rope.BFloat16, rope.Float16} {
		if !slices.ContainsFunc(numbers, func(x float64) bool { return p.Round(x) != x }) {
			return p
		}
	}
	return rope.Float32
}
