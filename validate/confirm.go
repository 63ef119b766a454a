package validate

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/version"
	"github.com/rope-rewrite/rope-rewrite/modeldiff"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Rebuilt compares the patched model's file with the original rewritten anew as the record says, or with the original
// as it is where there is no record.
type Rebuilt struct {
	First *modeldiff.FileDifference `json:"first"` // the first difference; nil if there is none

	// Dropped are functions of the fallback that a tool left out when it saved the file: the ops need their library.
	Dropped []string `json:"dropped,omitempty"`

	// Optimized says that both were compared as ONNX Runtime saves them, after its basic graph optimisations or with
	// what it infers of types and shapes.
	Optimized bool `json:"optimized,omitempty"`
}

// confirmed reports whether the patched model is, node for node and weight for weight, what its
// record says.
func (r *Rebuilt) confirmed() bool { return r != nil && r.First == nil }

// altered reports whether the file has a difference that no tool makes that saves models.
func (r *Rebuilt) altered() bool { return r != nil && r.First != nil && r.First.Altered }

// confirm compares the patched model's file with the expected model. Where the graphs differ, they may have been
// saved by ONNX Runtime: then its basic optimisations make both the same.
func (v *validation) confirm(ctx context.Context, want *onnx.Model) (*Rebuilt, error) {
	have, err := onnx.Open(v.patched)
	if err != nil {
		return nil, err
	}
	defer have.Close()
	r := &Rebuilt{First: modeldiff.CompareInterfaces(want, have)}
	if r.First == nil {
		if r.First, r.Optimized, err = v.compareGraphs(ctx, want, have); err != nil {
			return nil, err
		}
	}
	if r.First == nil {
		if r.First, r.Dropped, err = modeldiff.CompareRest(want, have); err != nil {
			return nil, err
		}
	}
	if r.First == nil && v.record != nil {
		r.First = v.compareRecords(want)
	}
	if first := r.First; first != nil {
		first.Altered = first.Altered && (v.record != nil || first.Exchanged) // what wrote a file without a record is not known
		if weight, err := modeldiff.CompareWeights(want, have, func(int64) error { return ctx.Err() }); err != nil {
			return nil, err
		} else if weight != nil && !first.Altered {
			r.First = weight
		}
	}
	if v.record != nil && r.First != nil && v.record.Tool != version.This().String() {
		v.note(fmt.Sprintf("The file says that rope-rewrite %s wrote it, and this is %s.", v.record.Tool, version.This()))
	}
	return r, ctx.Err()
}

// compareGraphs compares what both graphs compute, as they are and after ONNX Runtime's optimisations.
func (v *validation) compareGraphs(ctx context.Context, want, have *onnx.Model) (first *modeldiff.FileDifference, optimized bool, err error) {
	say := func(int64) error { return ctx.Err() }
	if first, err = modeldiff.CompareGraphs(want, have, say); err != nil || first == nil {
		return first, false, err
	}
	folder, err := os.MkdirTemp("", "rope-rewrite-")
	if err != nil {
		return nil, false, err
	}
	defer os.RemoveAll(folder)
	if first.Told {
		optimized, err = v.sameInferred(ctx, want, have, folder, say)
	}
	if !optimized && ctx.Err() == nil {
		optimized, err = v.sameOptimized(ctx, want, have, folder, say)
	}
	if optimized {
		first = nil
	}
	if ctx.Err() == nil {
		err = nil // what ONNX Runtime does not save is not confirmed
	}
	return first, optimized, err
}

// sameInferred reports whether all that a file says of types and shapes is what ONNX Runtime infers of the expected
// model.
func (v *validation) sameInferred(ctx context.Context, want, have *onnx.Model, folder string, say func(int64) error) (bool, error) {
	asked, err := modeldiff.Ask(want, have, say)
	if err != nil {
		return false, err
	}
	saved, err := v.save(ctx, asked, filepath.Join(folder, "inferred.onnx"))
	if err != nil {
		return false, err
	}
	defer saved.Close()
	first, err := modeldiff.CompareGraphs(modeldiff.Told(want, saved), have, say)
	return first == nil && err == nil, err
}

// compareRecords compares what the records of both claim.
func (v *validation) compareRecords(want *onnx.Model) *modeldiff.FileDifference {
	was, is := provenance.Record{}, claims(*v.record)
	if r := recordOf(want); r != nil {
		was = claims(*r)
	}
	for _, part := range []struct {
		name    string
		was, is any
	}{{"methods", was.Edits, is.Edits}, {"layers", was.Sites, is.Sites}, {"unchanged layers", was.Kept, is.Kept}, {"inputs, caches or target", was, is}} {
		if !reflect.DeepEqual(part.was, part.is) {
			return &modeldiff.FileDifference{Difference: modeldiff.Difference{What: "its record has other " + part.name + " than that of the original rewritten so"}}
		}
	}
	return nil
}

// claims is a record without what the machine measured that wrote it, its version, reasons in words, and where the
// parameters of methods came from: the original rewritten anew has those that were given before.
func claims(r provenance.Record) provenance.Record {
	r.Version, r.Tool, r.MaxError, r.ProvenWith, r.Configuration = 0, "", 0, nil, provenance.Configuration{}
	r.Sites, r.Kept, r.Edits = slices.Clone(r.Sites), slices.Clone(r.Kept), slices.Clone(r.Edits)
	for i := range r.Sites {
		s := &r.Sites[i]
		s.Proof, s.Unknown, s.Reason = nil, 0, ""
	}
	for i := range r.Kept {
		r.Kept[i].Reason = ""
	}
	for i := range r.Edits {
		e := &r.Edits[i]
		e.Note = ""
		if _, method := axisOf(*e); method {
			e.Given, _, _ = strings.Cut(e.Given, ":") // the parameters are the settings
		}
		e.Settings = slices.Clone(e.Settings)
		for j := range e.Settings {
			e.Settings[j].From = ""
		}
		slices.SortFunc(e.Settings, func(a, b rope.Setting) int { return cmp.Compare(a.Name, b.Name) })
	}
	return r
}

// sameOptimized reports whether two models compute the same after ONNX Runtime's basic graph optimisations: twice, for
// those may leave some of their own work.
func (v *validation) sameOptimized(ctx context.Context, want, have *onnx.Model, folder string, say func(int64) error) (bool, error) {
	pair := [2]*onnx.Model{want, have}
	for turn := range 2 {
		for i, m := range pair {
			optimized, err := v.save(ctx, m, filepath.Join(folder, fmt.Sprintf("%d_%d.onnx", turn, i)))
			if err != nil {
				return false, err
			}
			defer optimized.Close()
			pair[i] = optimized
		}
		if first, err := modeldiff.CompareGraphs(pair[0], pair[1], say); err != nil || first == nil {
			return err == nil, err
		}
	}
	return false, nil
}

// save has ONNX Runtime save a model after its basic graph optimisations, and opens that.
func (v *validation) save(ctx context.Context, m *onnx.Model, path string) (*onnx.Model, error) {
	em := engine.Model{Folder: filepath.Dir(m.Path), Save: path, Optimize: true, Library: m.Opset(customop.Domain) > 0}
	for _, in := range m.Graph.Inputs {
		em.Inputs = append(em.Inputs, in.Name)
	}
	for _, out := range m.Graph.Outputs {
		em.Outputs = append(em.Outputs, out.Name)
	}
	var err error
	if em.Bytes, err = m.Marshal(); err != nil {
		return nil, err
	}
	session, err := v.eng.Load(ctx, em)
	if err != nil {
		return nil, err
	}
	if err := session.Close(); err != nil {
		return nil, err
	}
	return onnx.Open(path)
}
