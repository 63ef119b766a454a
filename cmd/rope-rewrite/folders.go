package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/internal/modelfiles"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// ofFolder is what a command prints of the models of a folder, or of two.
type ofFolder[T any] struct {
	Models  []T       `json:"models"`
	Skipped []skipped `json:"skipped"` // models that were not looked at
	Alone   []string  `json:"alone"`   // models that only one of two folders has
}

// skipped is a model of a folder with which a command could not do its work.
type skipped struct {
	Model string `json:"model"`
	Why   string `json:"why"`
}

// twoModels accepts two models, or two folders with models.
func twoModels(first, second string) func([]string) error {
	return func(args []string) error {
		if len(args) != 2 {
			return cli.Usage("two models were expected, %s and %s, got %d", first, second, len(args))
		}
		if cli.IsFolder(args[0]) != cli.IsFolder(args[1]) {
			return cli.Usage("one of %s and %s is a folder and the other is not: two models or two folders were expected", args[0], args[1])
		}
		return nil
	}
}

// pairs are the models of two folders that belong together.
func pairs[T any](folders []string) ([]modelfiles.Pair, *ofFolder[T], error) {
	list, alone, err := modelfiles.Pairs(folders[0], folders[1])
	return list, &ofFolder[T]{Models: []T{}, Skipped: []skipped{}, Alone: slices.Concat([]string{}, alone)}, err
}

// skip notes why a model could not be looked at, unless the whole work has to end.
func (f *ofFolder[T]) skip(ctx context.Context, model string, err error) error {
	if ctx.Err() != nil || errors.Is(err, rewrite.ErrMemory) {
		return err
	}
	f.Skipped = append(f.Skipped, skipped{model, cli.Sentence(err)})
	return nil
}

// text prints each model's text, and what was skipped. what is the work.
func (f *ofFolder[T]) text(w *cli.Writer, what string, one func(*cli.Writer, T)) {
	for _, m := range f.Models {
		one(w, m)
		w.Line("")
	}
	for _, s := range f.Skipped {
		w.Line("%s", cli.Wrap(fmt.Sprintf("%s: not %s: %s", s.Model, what, s.Why), "  "))
	}
	for _, path := range f.Alone {
		w.Line("%s", cli.Wrap(path+" has no counterpart in the other folder.", "  "))
	}
}

// each names the model of a folder in front of what is said to be done.
func each(say func(string), i, of int, path string) func(string) {
	if say == nil {
		return nil
	}
	return func(what string) { say(fmt.Sprintf("%d of %d, %s: %s", i+1, of, path, what)) }
}
