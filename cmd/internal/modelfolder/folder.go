package modelfolder

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/links"
	"github.com/rope-rewrite/rope-rewrite/internal/modelconfig"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// ErrNoModel says that a folder has no model with rotary attention.
var ErrNoModel = errors.New("no model with rotary attention in the folder")

// Folder is a folder whose models are rewritten in memory. Close it.
type Folder struct {
	// Files are those of the new folder, in the order of their paths.
	Files []File
	// Left are not in the new folder: hidden files, what is not a regular file, links out of the folder, and models that
	// were made from one beside them.
	Left []string
	// Warnings are about the folder; those of a model are in its report.
	Warnings []string

	from  links.Folder
	lines []line // of each file, how it is made
}

// File is one file of the new folder.
type File struct {
	Path    string               `json:"path"` // relative, with slashes
	What    What                 `json:"what"`
	Size    int64                `json:"size,omitempty"`    // bytes of what comes along
	Changes []modelconfig.Change `json:"changes,omitempty"` // of a configuration
	Report  *rewrite.Report      `json:"report,omitempty"`  // of a model
}

// What says what becomes of a file.
type What string

const (
	Rewritten  What = "rewritten"  // a model
	Unverified What = "unverified" // a model with a layer that could not be rewritten; the folder is not written
	Configured What = "configured" // a configuration that was changed
	Added      What = "added"      // the op library, or the record of the folder
	Along      What = "along"      // comes along: Linked, Cloned or Copied once it is written

	Copied = What(onnx.Copied)
	Cloned = What(onnx.Cloned)
	Linked = What(onnx.Linked)
)

// line is how one file is made.
type line struct {
	from  source      // of what comes along
	model *onnx.Model // rewritten
	data  []byte      // written
}

// Prepare rewrites every model of a folder in memory. A model in which not every attention layer
// could be rewritten is Unverified, unless opts.AllowUnchanged, and Write refuses it. With opts.PlanOnly the models
// are made too: what is said of the new folder is read from them.
//
// The error is ErrNoModel where no model has rotary attention, or names the file.
func Prepare(ctx context.Context, folder string, opts rewrite.Options) (_ *Folder, err error) {
	opts, err = opts.FindLibraries()
	if err != nil {
		return nil, err
	}
	opts.PlanOnly = false
	f := &Folder{from: links.Folder{Path: folder, Follow: opts.Source.FollowLinks}}
	files, left, err := scan(f.from)
	if err != nil {
		return nil, err
	}
	f.Left = left
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	earlier, err := readRecord(f.from)
	if err != nil {
		return nil, err
	}
	say := opts.Progress
	for _, s := range files {
		if !s.isModel() {
			continue
		}
		if say != nil {
			opts.Progress = func(what string) { say(s.path + ": " + what) }
		}
		if opts.Source.Configuration, err = earlier.configuration(f.from, s.path); err != nil {
			return nil, err
		}
		if err := f.rewriteModel(ctx, s, opts); err != nil {
			return nil, named(s.path, err)
		}
	}
	if !slices.ContainsFunc(f.Files, func(x File) bool { return x.What == Rewritten || x.What == Unverified }) {
		if !slices.ContainsFunc(files, source.isModel) {
			return nil, fmt.Errorf("%w: it has no .onnx file", ErrNoModel)
		}
		if opts.Earlier.Restore {
			return nil, errors.New("there is nothing to restore: no model of the folder has a record of an earlier rewrite")
		}
		return nil, ErrNoModel
	}
	if err := f.configure(files, earlier, opts); err != nil {
		return nil, err
	}
	if !opts.Earlier.Restore { // the folder is then as it was
		if err := f.audit(ctx, rewrite.Options{Evaluation: opts.Evaluation, Progress: say}); err != nil {
			return nil, err
		}
	}
	for _, s := range files {
		if !f.has(s.path) && s.path != recordFile {
			f.add(File{Path: s.path, What: Along, Size: s.info.Size()}, line{from: s})
		}
	}
	f.sort()
	return f, nil
}

// rewriteModel rewrites one model. A model without rotary attention comes along later, and so does
// one without a record under opts.Earlier.Restore.
func (f *Folder) rewriteModel(ctx context.Context, s source, opts rewrite.Options) error {
	model, err := f.open(s)
	if err != nil {
		return err
	}
	if opts.Earlier.Restore {
		if _, err := provenance.Read(model); errors.Is(err, provenance.ErrNone) {
			return model.Close()
		}
	}
	report, err := rewrite.Rewrite(ctx, model, opts)
	switch {
	case errors.Is(err, rewrite.ErrNoAttention):
		return model.Close()
	case errors.Is(err, rewrite.ErrPartial), errors.Is(err, rewrite.ErrLimited):
		f.add(File{Path: s.path, What: Unverified, Report: report}, line{})
		return model.Close()
	case err != nil:
		return errors.Join(err, model.Close())
	}
	if report.Replaced() == 0 {
		return model.Close()
	}
	f.add(File{Path: s.path, What: Rewritten, Report: report}, line{model: model})
	return nil
}

// open opens a model, which may be a link by now.
func (f *Folder) open(s source) (*onnx.Model, error) {
	name := filepath.FromSlash(s.path)
	path := filepath.Join(f.from.Path, name)
	if f.from.Follow {
		return onnx.Open(path)
	}
	file, err := f.from.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return onnx.OpenFile(file, path)
}

// named puts the model's name before an error of its rewrite, unless that names the file already.
func named(name string, err error) error {
	if file := (*onnx.FileError)(nil); errors.As(err, &file) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// Unverified reports whether a model has a layer that could not be rewritten.
func (f *Folder) Unverified() bool {
	return slices.ContainsFunc(f.Files, func(x File) bool { return x.What == Unverified })
}

// Close frees the models.
func (f *Folder) Close() error {
	var err error
	for i := range f.lines {
		if m := f.lines[i].model; m != nil {
			err = errors.Join(err, m.Close())
			f.lines[i].model = nil
		}
	}
	return err
}

func (f *Folder) add(x File, l line) {
	f.Files, f.lines = append(f.Files, x), append(f.lines, l)
}

func (f *Folder) has(path string) bool {
	return slices.ContainsFunc(f.Files, func(x File) bool { return x.Path == path })
}

// sort puts the files in the order of their paths.
func (f *Folder) sort() {
	order := make([]int, len(f.Files))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if f.Files[a].Path < f.Files[b].Path {
			return -1
		}
		return 1
	})
	files, lines := make([]File, len(order)), make([]line, len(order))
	for to, from := range order {
		files[to], lines[to] = f.Files[from], f.lines[from]
	}
	f.Files, f.lines = files, lines
}
