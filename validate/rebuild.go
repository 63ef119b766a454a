package validate

import (
	"context"
	"encoding/hex"
	"fmt"
	"reflect"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// readRecords reads what the models' records say. That of the patched model counts where it is of
// this original.
func (v *validation) readRecords() error {
	original, err := onnx.Open(v.original)
	if err != nil {
		return err
	}
	defer original.Close()
	patched, err := onnx.Open(v.patched)
	if err != nil {
		return err
	}
	defer patched.Close()
	v.before, v.record, v.scaled = recordOf(original), recordOf(patched), rewrite.ReadScaledCaches(patched)
	graph := digest(original) // before any rewrite
	if v.before != nil {
		graph = v.before.Graph
	}
	switch {
	case v.before != nil && v.record == nil && digest(patched) == graph:
		return &OrderError{v.original, v.patched}
	case v.record != nil && v.record.Graph != graph:
		v.note(fmt.Sprintf("The patched model's record names another original (SHA-256 of its graph %.12s…, here %.12s…), so it counts as none.", v.record.Graph, graph))
		v.record = nil
	}
	return nil
}

// recordOf reads a model's record; nil where it has none that can be read, which then claims nothing.
func recordOf(m *onnx.Model) *provenance.Record {
	record, err := provenance.Read(m)
	if err != nil {
		return nil
	}
	return record
}

func digest(m *onnx.Model) string {
	graph := m.Digest()
	return hex.EncodeToString(graph[:])
}

// OrderError says that the original was given as the patched model.
type OrderError struct{ Original, Patched string }

func (e *OrderError) Error() string {
	return fmt.Sprintf("the models are in the wrong order: %s was rewritten from %s; give the original first", e.Original, e.Patched)
}

// compareFile compares the patched model with what its record says: its file with that of the original rewritten
// anew, its logits with those of that model, each attention with a reference.
func (v *validation) compareFile(ctx context.Context) error {
	r := v.result
	if v.record != nil {
		r.Claim = &Claim{Methods: []provenance.Edit{}, Holds: true, Changes: !reflect.DeepEqual(methods(v.before), methods(v.record))}
		if r.Claim.Changes {
			for _, e := range methods(v.record) {
				e.Note = "" // words, which are not compared with anything
				r.Claim.Methods = append(r.Claim.Methods, e)
			}
		}
	}
	v.clock.begin(rewriteAgain, "")
	if err := v.compareRebuilt(ctx); err != nil {
		if ctx.Err() != nil {
			return err
		}
		v.note(fmt.Sprintf("The file could not be compared with the original rewritten as its record says: %v.", err))
	}
	if r.Claim == nil {
		return nil
	}
	v.clock.begin(compareLayers, "")
	if err := v.claim(ctx, r.Claim); err != nil {
		if ctx.Err() != nil {
			return err
		}
		v.note(fmt.Sprintf("Not compared: all layers: %v.", err))
	}
	return nil
}

// compareRebuilt compares the patched model with the original rewritten as the record says, or with the original as it
// is where there is no record of its rewrite.
func (v *validation) compareRebuilt(ctx context.Context) error {
	m, err := v.rebuild(ctx, "")
	if err != nil {
		return err
	}
	defer m.Close()
	r := v.result
	if r.Rebuilt, err = v.confirm(ctx, m); err != nil {
		return err
	}
	if r.Claim == nil || !r.Claim.Changes || r.Rebuilt.altered() || r.Rebuilt.confirmed() && v.record.Target == string(rewrite.Ops) {
		return nil
	}
	return v.compareExpected(ctx, m)
}

// again are the options that make of the original what the record says, for a target; "" is the
// record's.
func (v *validation) again(target rewrite.Target) (rewrite.Options, error) {
	options, err := again(v.record, machine(v.opts.Rewrite))
	if err != nil {
		return options, err
	}
	options.Earlier.Restore = v.before != nil && len(v.record.Edits) == 0
	if target != "" {
		options.Target, options.Output.NoFallback = target, true
	}
	if v.scaled == nil {
		return options, nil
	}
	if target == "" {
		options.Cache.Scales, err = v.scalesByLayer()
		return options, err
	}
	options.Cache = rewrite.Cache{} // of fixed scales, which no other target has
	return options, nil
}

// rebuild rewrites the original as the record says, in memory.
func (v *validation) rebuild(ctx context.Context, target rewrite.Target) (*onnx.Model, error) {
	m, err := onnx.Open(v.original)
	if err != nil || v.record == nil {
		return m, err
	}
	options, err := v.again(target)
	if err == nil {
		_, err = rewrite.Rewrite(ctx, m, options)
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// compareExpected compares the patched model's logits with those of the original to which the record's
// methods were given. m is that model as the patched one was written.
func (v *validation) compareExpected(ctx context.Context, m *onnx.Model) error {
	if v.record.Target != string(rewrite.Ops) {
		target := rewrite.Ops
		if v.scaled != nil {
			target = rewrite.PlainONNX // whose nodes read the present caches
		}
		other, err := v.rebuild(ctx, target)
		if err != nil {
			return err
		}
		defer other.Close()
		m = other
	}
	open := func(wide bool) ([][]float64, error) {
		c := *m // what is loaded is changed
		c.Graph = m.Graph.Clone()
		logits, _, err := v.run(ctx, v.original, decoder.Options{Model: &c, Wide: wide, Held: v.held()}, v.scaled == nil)
		return logits, err
	}
	v.clock.begin(runExpected, "")
	logits, err := open(false)
	if err != nil {
		return err
	}
	var wide [][]float64
	if v.result.Short {
		if wide, err = open(true); err != nil {
			return err
		}
	}
	for i, own := range logits {
		e := &Expected{Difference: distance(v.sequences[i], own, v.logits[i])}
		if wide != nil {
			e.ExpectedError, e.PatchedError = distance(v.sequences[i], own, wide[i]), distance(v.sequences[i], v.logits[i], wide[i])
		}
		v.result.Cases[i].Expected = e
	}
	return nil
}
