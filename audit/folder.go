package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/modelfiles"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// FolderReport is the result of the audits of a folder's models.
type FolderReport struct {
	Models  []*Report `json:"models"`
	Skipped []Skipped `json:"skipped"`
}

// Skipped is a model that was not audited.
type Skipped struct {
	Model string `json:"model"`
	Why   string `json:"why"`
	Err   error  `json:"-"` // of Run
}

// Failed counts the models that could not be audited. Those without a configuration or rotary
// attention are not among them: an encoder may stand beside its decoder.
func (r *FolderReport) Failed() (n int) {
	for _, s := range r.Skipped {
		if unclaimed := (*NoConfigError)(nil); !errors.As(s.Err, &unclaimed) && !errors.Is(s.Err, rewrite.ErrNoAttention) {
			n++
		}
	}
	return n
}

// RunFolder audits the models in a folder and the folders in it. The error says why it could not
// go on; what concerns one model is in the report.
func RunFolder(ctx context.Context, folder string, opts Options) (*FolderReport, error) {
	all := &FolderReport{Models: []*Report{}, Skipped: []Skipped{}}
	paths, err := modelfiles.List(folder)
	if err != nil {
		return all, err
	}
	progress := opts.Rewrite.Progress
	for i, path := range paths {
		if progress != nil {
			opts.Rewrite.Progress = func(what string) { progress(fmt.Sprintf("%d of %d: %s", i+1, len(paths), what)) }
		}
		report, err := Run(ctx, path, opts)
		switch {
		case ctx.Err() != nil || errors.Is(err, rewrite.ErrMemory):
			return all, err
		case err == nil:
			all.Models = append(all.Models, report)
		default:
			all.Skipped = append(all.Skipped, Skipped{path, err.Error(), err})
		}
	}
	return all, nil
}
