package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/recipe"
	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
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
			return cli.Exit(cli.ExitUsage, r.atLine(f.Line, err))
		}
		r.followed = append(r.followed, f)
	}
	return nil
}

// atLine says on which line of the recipe an error is, if line is above 0.
func (r *rewriteCommand) atLine(line int, err error) error {
	if line == 0 {
		return err
	}
	return &recipe.Error{File: r.recipe, Line: line, Err: err}
}

// lineOf is the line of the recipe that gave a flag its value, 0 where the command line did.
func (r *rewriteCommand) lineOf(flag, value string) int {
	for _, f := range r.followed {
		if f.Name == flag && f.Value == value {
			return f.Line
		}
	}
	return 0
}

// selection is a choice of layers that a flag makes, and the line of the recipe on which it does.
func (r *rewriteCommand) selection(flag, value, given string, layers cli.Layers) cli.Selection {
	if line := r.lineOf(flag, value); line > 0 {
		given = fmt.Sprintf("%s:%d: %s", r.recipe, line, given)
	}
	return cli.Selection{Given: given, Layers: layers}
}

// unfit says on which line of the recipe stands what does not fit the model.
func (r *rewriteCommand) unfit(err error) error {
	e := (*rewrite.EditError)(nil)
	if !errors.As(err, &e) {
		return err
	}
	line := 0
	for _, f := range r.followed { // of two that are equal, the later one is too many
		if f.Name == e.What && (e.Given == "" || isMethod(f, e)) || f.Name == "rope-parameters" && e.What == rope.ScalingAxis.String() {
			line = f.Line
		}
	}
	return r.atLine(line, err)
}

// isMethod reports whether a flag gives the method that does not fit, for the layers that do not.
func isMethod(f recipe.Flag, e *rewrite.EditError) bool {
	var o rewrite.Options
	for _, axis := range []rope.Axis{rope.ScalingAxis, rope.PositionsAxis, rope.MaskAxis} {
		if axis.String() != f.Name {
			continue
		}
		if _, err := cli.AddEdit(&o, axis, f.Value); err != nil {
			return false
		}
	}
	is := func(s rope.Spec, where string) bool {
		return s.String() == e.Given && (e.Where == "" || e.Where == where)
	}
	return slices.ContainsFunc(o.Edits, func(s rope.Spec) bool { return is(s, "") }) ||
		slices.ContainsFunc(o.LayerEdits, func(l rewrite.LayerEdit) bool { return is(l.Spec, l.Where) })
}
