package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/internal/modelfiles"
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

// Pairs are the models of two folders that belong together.
func Pairs[T any](folders []string) ([]modelfiles.Pair, *OfFolder[T], error) {
	list, alone, err := modelfiles.Pairs(folders[0], folders[1])
	return list, &OfFolder[T]{Models: []T{}, Skipped: []Skipped{}, Alone: slices.Concat([]string{}, alone)}, err
}

// Skip notes why a model could not be looked at, unless the whole work has to end.
func (f *OfFolder[T]) Skip(ctx context.Context, model string, err error) error {
	if ctx.Err() != nil || errors.Is(err, rewrite.ErrMemory) {
		return err
	}
	f.Skipped = append(f.Skipped, Skipped{model, Sentence(err)})
	return nil
}

// Text prints each model's text, and what was skipped. what is the work.
func (f *OfFolder[T]) Text(w *Writer, what string, one func(*Writer, T)) {
	for _, m := range f.Models {
		one(w, m)
		w.Line("")
	}
	for _, s := range f.Skipped {
		w.Line("%s", Wrap(fmt.Sprintf("%s: not %s: %s", s.Model, what, s.Why), "  "))
	}
	for _, path := range f.Alone {
		w.Line("%s", Wrap(path+" has no model of the same name in the other folder.", "  "))
	}
}

// Each names the model of a folder in front of what is said to be done.
func Each(say func(string), i, of int, path string) func(string) {
	if say == nil {
		return nil
	}
	return func(what string) { say(fmt.Sprintf("%d of %d, %s: %s", i+1, of, path, what)) }
}
