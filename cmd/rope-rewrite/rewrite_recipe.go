package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/recipe"
	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
)

// follow sets the flags that a recipe asks for, but for those that stand on the command line. Each
// is read as it comes, so that an error names the line.
func (r *rewriteCommand) follow(cmd *cobra.Command) error {
	if !cmd.Flags().Changed("recipe") {
		return nil
	}
	data, err := configfile.Read(r.recipe, configfile.Config)
	if err != nil {
		return err
	}
	if _, _, err := r.options(cmd); err != nil { // of the command line alone
		return err
	}
	wanted, err := recipe.Parse(r.recipe, data)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	given := map[string]bool{}
	for _, f := range wanted.Flags {
		given[f.Name] = given[f.Name] || cmd.Flags().Changed(f.Name)
	}
	for _, f := range wanted.Flags {
		if given[f.Name] {
			continue
		}
		err := cmd.Flags().Set(f.Name, f.Value)
		if err != nil {
			err = flagError(cmd, err)
		} else {
			_, _, err = r.options(cmd)
		}
		if err != nil {
			return &exitError{exitUsage, &recipe.Error{File: r.recipe, Line: f.Line, Err: err}}
		}
	}
	return nil
}

// printRecipe writes the recipe of a model that was rewritten.
func printRecipe(cmd *cobra.Command, path string) error {
	model, err := onnx.Open(path)
	if err != nil {
		return err
	}
	defer model.Close()
	record, err := provenance.Read(model)
	if errors.Is(err, provenance.ErrNone) {
		return fmt.Errorf("%s: %w, so it has no recipe", path, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	wanted := recipe.Of(record)
	if record.OpSpec > 0 && len(definition.Of(model)) == 0 { // the record does not tell it
		wanted.Flags = append(wanted.Flags, recipe.Flag{Name: "definition", Value: "none"})
	}
	text, err := wanted.Text()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s", text)
	return err
}
