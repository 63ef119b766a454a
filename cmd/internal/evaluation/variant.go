package evaluation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// Variant is a model to be evaluated.
type Variant struct {
	Name  string          // as tables show it
	Model string          // its .onnx file, or a folder as lm.Open takes it
	Patch rewrite.Options // how it is patched first
	// AsIs takes the model as the file has it. It is patched only to compute the logits of the
	// last token alone, and the op in the place of its attention where that is verified equal,
	// both of which make it faster; where that cannot be, the file runs unchanged.
	AsIs bool
}

// opened is a variant that runs.
type opened struct {
	model   *lm.Model
	text    *lm.Sequence
	methods []provenance.Edit // what the patch changed
	folder  string            // of the patched file
}

func (o *opened) close() error {
	return errors.Join(o.text.Close(), o.model.Close(), os.RemoveAll(o.folder))
}

// open patches a variant and loads it. With lastLogits it computes the logits of the last token
// alone, where its head can be found.
func (v Variant) open(ctx context.Context, options lm.Options, lastLogits bool) (_ *opened, err error) {
	file, err := lm.File(v.Model)
	if err != nil {
		return nil, err
	}
	if err := readable(file); err != nil {
		return nil, fmt.Errorf("%s: %w", v.Name, err)
	}
	o := &opened{}
	if o.folder, err = os.MkdirTemp("", "rope-rewrite-eval-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(o.folder))
		}
	}()
	if options.Folder == "" {
		options.Folder = lm.Folder(file)
	}
	patched := filepath.Join(o.folder, filepath.Base(file))
	if o.methods, err = v.patch(ctx, file, patched, lastLogits); err != nil {
		if !v.AsIs || ctx.Err() != nil {
			return nil, fmt.Errorf("%s: %w", v.Name, err)
		}
		patched = file
	}
	options.Context = -1 // how a model fails beyond its context is what is asked
	if o.model, err = lm.Open(patched, options); err != nil {
		return nil, fmt.Errorf("%s: %w", v.Name, err)
	}
	if o.text, err = o.model.Decoder().NewSequence(); err != nil {
		return nil, errors.Join(err, o.model.Close())
	}
	return o, nil
}

// readable refuses a model whose weights are not there: it runs neither patched nor as it is.
func readable(file string) error {
	m, err := onnx.Open(file)
	if err != nil {
		return err
	}
	defer m.Close()
	for err := range m.UnreadableData() {
		return fmt.Errorf("%w; no runtime loads the model without this file: put it there", err)
	}
	return nil
}

// patch writes the patched model.
func (v Variant) patch(ctx context.Context, file, output string, lastLogits bool) ([]provenance.Edit, error) {
	m, err := onnx.Open(file)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	options := v.Patch
	if v.AsIs {
		options.Earlier.Carried, options.AllowUnchanged = true, true
	}
	if lastLogits {
		options.LogitsPlaces = rewrite.LogitsPlacesInput
	}
	report, err := rewrite.Rewrite(ctx, m, options)
	if err != nil && lastLogits && ctx.Err() == nil {
		// A head that is not found makes an evaluation slower, not impossible.
		methods, other := v.patch(ctx, file, output, false)
		return methods, other
	}
	if err != nil {
		return nil, err
	}
	var methods []provenance.Edit
	if report.Record != nil {
		methods = slices.DeleteFunc(slices.Clone(report.Record.Edits), func(e provenance.Edit) bool { return e.What == "logits" })
	}
	return methods, m.Save(output, onnx.SaveOptions{})
}
