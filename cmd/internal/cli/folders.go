package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/internal/modelfiles"
	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// OfFolder is what a command prints of the models of a folder, or of two.
type OfFolder[T any] struct {
	Models  []T       `json:"models"`
	Skipped []Skipped `json:"skipped"` // models that were not looked at
	Alone   []string  `json:"alone"`   // models that only one of two folders has
}

// Skipped is a model of a folder with which a command could not do its work.
type Skipped struct {
	Model string `json:"model"`
	Why   string `json:"why"`
}

// TwoModels accepts two models, or two folders with models.
func TwoModels(first, second string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 2 {
			return Usage("expected two models, %s and %s, got %d", first, second, len(args))
		}
		if IsFolder(args[0]) != IsFolder(args[1]) {
			return Usage("one of %s and %s is a folder and the other is not; expected two models or two folders", args[0], args[1])
		}
		return nil
	}
}

// Work is what a command does with each model of a folder, or with each two models of one name of two folders.
type Work[T any] struct {
	Do   func(ctx context.Context, p modelfiles.Pair, say func(string)) (T, error)
	Name func(T) string // stands above the text in a folder; nil where the text has it
	Text func(*Writer, T)
	Done string // what was done with a model, for example "compared"

	Code    func(T) int     // the exit code of a result
	Unable  func(error) int // the exit code of a model with which nothing could be done
	Failed  string          // what those are whose code is ExitFailed
	Alone   int             // the exit code where only one folder has a model
	Nothing error           // ends the command where there is no result
}

// Run does the work for two models, or for two folders.
func (work Work[T]) Run(ctx context.Context, c *Common, cmd *cobra.Command, args []string, progress *Progress) error {
	if IsFolder(args[0]) {
		return work.Folders(ctx, c, cmd, args, progress)
	}
	defer progress.Done()
	result, err := work.Do(ctx, modelfiles.Pair{A: args[0], B: args[1]}, progress.Say)
	progress.Done()
	if err != nil {
		if code := work.Unable(err); code > ExitFailed {
			return Exit(code, err)
		}
		return err
	}
	if err := c.Show(cmd, result, func(w *Writer) { work.Text(w, result) }); err != nil {
		return err
	}
	return Reported(work.Code(result))
}

// Folders does the work for one folder or two. Of exit codes ExitFailed counts most, and then the largest.
func (work Work[T]) Folders(ctx context.Context, c *Common, cmd *cobra.Command, folders []string, progress *Progress) error {
	defer progress.Done()
	all := &OfFolder[T]{Models: []T{}, Skipped: []Skipped{}, Alone: []string{}}
	list, alone, made, err := pairs(folders)
	if err != nil {
		return err
	}
	failed, worst := 0, 0
	if all.Alone = append(all.Alone, alone...); len(alone) > 0 {
		worst = work.Alone
	}
	for _, m := range made {
		all.Skipped = append(all.Skipped, Skipped{m.Path, leftOut(m)})
	}
	for i, p := range list {
		result, err := work.Do(ctx, p, func(what string) { progress.Say(fmt.Sprintf("%d of %d, %s: %s", i+1, len(list), p.B, what)) })
		code := 0
		switch {
		case err == nil:
			all.Models, code = append(all.Models, result), work.Code(result)
		case ctx.Err() != nil || errors.Is(err, rewrite.ErrMemory):
			return err
		default:
			all.Skipped, code = append(all.Skipped, Skipped{p.B, Sentence(err)}), work.Unable(err)
		}
		if code == ExitFailed {
			failed++
			continue
		}
		worst = max(worst, code)
	}
	progress.Done()
	err = c.Show(cmd, all, func(w *Writer) { all.text(w, work) })
	switch {
	case err != nil:
		return err
	case failed > 0:
		return Exit(ExitFailed, fmt.Errorf("%d of %d models %s", failed, len(list), work.Failed))
	case worst == 0 && len(all.Models) == 0:
		return work.Nothing
	}
	return Reported(worst)
}

// pairs are the models of one folder, or those of two that belong together.
func pairs(folders []string) (list []modelfiles.Pair, alone []string, made []modelfiles.Made, err error) {
	if len(folders) == 2 {
		return modelfiles.Pairs(folders[0], folders[1])
	}
	paths, made, err := modelfiles.List(folders[0])
	for _, path := range paths {
		list = append(list, modelfiles.Pair{B: path})
	}
	return list, nil, made, err
}

// leftOut is why a command leaves out a model of a folder.
func leftOut(m modelfiles.Made) string {
	return "it was made from " + filepath.Base(m.From) + " beside it; name the file to use it"
}

// SayLeftOut says which models of a folder are left out, if path is one with a model for lm.
func SayLeftOut(stderr io.Writer, path string) error {
	file, err := lm.File(path)
	if err != nil || !IsFolder(path) {
		return err
	}
	_, made, err := modelfiles.List(filepath.Dir(file))
	for _, m := range made {
		if m.Path != file {
			fmt.Fprintln(stderr, Wrap(fmt.Sprintf("%s is left out: %s.", m.Path, leftOut(m)), "  "))
		}
	}
	return err
}

// text prints each model's text, and what was skipped.
func (f *OfFolder[T]) text(w *Writer, work Work[T]) {
	for _, m := range f.Models {
		if work.Name != nil {
			w.Text("  ", "%s", work.Name(m))
		}
		work.Text(w, m)
		w.Line("")
	}
	for _, s := range f.Skipped {
		w.Text("  ", "%s: not %s: %s", s.Model, work.Done, s.Why)
	}
	for _, path := range f.Alone {
		w.Text("  ", "%s has no model of the same name in the other folder.", path)
	}
}
