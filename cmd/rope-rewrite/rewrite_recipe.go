package main

import (
	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/recipe"
	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
)

// follow sets the flags that a recipe names, except those on the command line. Each is checked at
// once, so that an error names its line.
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
		return cli.Exit(cli.ExitUsage, err)
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
			err = cli.FlagError(cmd, err)
		} else {
			_, _, err = r.options(cmd)
		}
		if err != nil {
			return cli.Exit(cli.ExitUsage, &recipe.Error{File: r.recipe, Line: f.Line, Err: err})
		}
	}
	return nil
}
