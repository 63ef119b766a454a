package rewrite

import (
	"context"
	"crypto/sha256"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
)

// request is what the options ask for of one model, checked as far as that is
// possible before anything of the model is run.
type request struct {
	opts     Options
	model    *onnx.Model
	config   modelConfig
	backend  backend
	features []feature

	digest  [sha256.Size]byte  // of the model's graph, as it came
	earlier *earlier           // what an earlier rewrite left; nil for most models
	carried bool               // sites start from what the earlier rewrite made of them
	written map[int]*writtenOp // its ops, by layer

	analyser *analyser // that found the sites; nil where an earlier rewrite's record tells them
}

// backend writes what sites become.
type backend interface {
	// takes says whether the backend can do what the options ask for.
	takes(Options) error
	// keepsAttention says that the model's own attention stays: a site whose rotation
	// alone can be measured is of use, and padded tokens get what they got before.
	keepsAttention() bool
	// bind decides how each site is written, and readies it for that.
	bind(context.Context, *request, []*edited) error
	// lower writes the site's edited value.
	lower(*edited) (lower.Change, error)
	// write changes the model. What the features make comes after it.
	write(context.Context, *onnx.Model, *plan, *Report) error
	// finish completes the model behind the features.
	finish(context.Context, *request, *plan, *Report) error
	// text names the backend where it is not the usual one.
	text() string
}

// feature is what a rewrite adds to a model beside the edits of its sites.
type feature interface {
	// edit is the feature as report and record say it.
	edit() provenance.Edit
	// check refuses a model by what came of its sites, and proves what the feature needs
	// of the rest.
	check(context.Context, *request, *Report) error
	// site adds the feature to a site that was bound.
	site(*onnx.Model, *edited) error
	// planned refuses what was planned, before the model is changed.
	planned([]lower.Change) error
	// finish changes the model, after its sites were written.
	finish(*onnx.Model, []lower.Change) error
}

// newRequest checks what the options ask for. It gives a model that was rewritten
// before its own inputs and outputs back.
func newRequest(m *onnx.Model, opts Options, digest [sha256.Size]byte) (*request, error) {
	r := &request{opts: opts, model: m, config: readConfig(m.Path, opts.Configuration), digest: digest}
	if err := r.startAgain(); err != nil {
		return nil, err
	}
	opts = r.opts
	if err := opts.checkPrecision(); err != nil {
		return nil, err
	}
	for _, of := range []func(*onnx.Model, Options) (feature, error){documents, fixedCache, lastLogits} {
		f, err := of(m, opts)
		if err != nil {
			return nil, err
		}
		if f != nil {
			r.features = append(r.features, f)
		}
	}
	var err error
	if r.backend, err = opts.Target.newBackend(); err != nil {
		return nil, err
	}
	if err := r.backend.takes(opts); err != nil {
		return nil, err
	}
	if err := oneOfEachAxis(opts.Edits); err != nil {
		return nil, err
	}
	if r.earlier != nil {
		r.opts.Context = r.earlier.fill(opts.Context)
	}
	r.opts.Context = r.config.Fill(r.opts.Context)
	return r, nil
}

// check refuses a model by what was measured of it.
func (r *request) check(ctx context.Context, report *Report) error {
	for _, f := range r.features {
		if err := f.check(ctx, r, report); err != nil {
			return err
		}
	}
	return nil
}

// write changes the model as planned.
func (r *request) write(ctx context.Context, m *onnx.Model, p *plan, report *Report) error {
	if text := r.backend.text(); text != "" {
		if r.backend.keepsAttention() && !p.replaces() && len(report.Edits) == 0 {
			return nil // nothing is asked of it
		}
		report.Edits = append(report.Edits, text)
	}
	before := shapesOf(m)
	if len(p.changes) > 0 {
		for _, f := range r.features {
			if err := f.planned(p.changes); err != nil {
				return &EditError{Layer: WholeModel, Err: err}
			}
		}
	}
	if err := r.backend.write(ctx, m, p, report); err != nil || len(p.changes) == 0 {
		return err
	}
	for _, f := range r.features {
		if err := f.finish(m, p.changes); err != nil {
			return &EditError{Layer: WholeModel, Err: err}
		}
	}
	if r.opts.inspect {
		return nil // nothing is kept of it
	}
	if err := r.backend.finish(ctx, r, p, report); err != nil {
		return err
	}
	report.Record = r.record(report, p, before)
	return provenance.Write(m, report.Record)
}

// named returns a value by its name, nil where there is none.
func named(list []*onnx.ValueInfo, name string) *onnx.ValueInfo {
	if i := slices.IndexFunc(list, func(v *onnx.ValueInfo) bool { return v.Name == name }); i >= 0 {
		return list[i]
	}
	return nil
}
