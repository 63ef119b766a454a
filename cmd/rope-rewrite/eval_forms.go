package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation/task"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// rulerForms is what --form takes for the forms that RULER's authors have.
const rulerForms = "ruler"

// builtinForm is the prompt of a task, in RULER's own form if --form asks for these.
func (e *evalCommand) builtinForm(name string) ([]byte, error) {
	if slices.Contains(e.forms, rulerForms) {
		return task.RulerForm(name)
	}
	return task.BuiltinForm(name)
}

// printForm prints the form of a task if --form TASK=- asks for it.
func (e *evalCommand) printForm(cmd *cobra.Command) (bool, error) {
	for _, f := range e.forms {
		if name, file, _ := strings.Cut(f, "="); file == "-" {
			b, err := e.builtinForm(name)
			if err != nil {
				return false, cli.Usage("--form %s: expected a task with a prompt: %s", f, strings.Join(task.Names(), ", "))
			}
			_, err = cmd.OutOrStdout().Write(b)
			return true, err
		}
	}
	return false, nil
}

// formsOf are the prompts in place of the built-in ones.
func (e *evalCommand) formsOf(tasks []string) (map[string]task.Form, error) {
	forms := map[string]task.Form{}
	if slices.Contains(e.forms, rulerForms) {
		for _, name := range tasks {
			b, err := task.RulerForm(name)
			if errors.Is(err, fs.ErrNotExist) {
				continue // a task without a prompt, or none
			}
			if err != nil {
				return nil, err
			}
			if forms[name], err = task.ParseForm(b); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	for _, f := range e.forms {
		if f == rulerForms {
			continue
		}
		name, file, found := strings.Cut(f, "=")
		if _, err := task.BuiltinForm(name); !found || err != nil {
			return nil, cli.Usage("--form %q: expected ruler, or TASK=FILE, TASK one of %s", short.Name(f), strings.Join(task.Names(), ", "))
		}
		var err error
		if forms[name], err = task.ReadForm(file); err != nil {
			return nil, err
		}
	}
	return forms, nil
}
