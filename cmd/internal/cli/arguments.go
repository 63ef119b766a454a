package cli

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/internal/suggest"
)

// ErrNoModel is the error of a command line without a model.
var ErrNoModel = Usage("no model is given; give the path of an .onnx file or of a folder with models")

// OneModel accepts exactly one model.
func OneModel(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return ErrNoModel
	}
	return Misplaced(cmd, args)
}

// NoArgs accepts nothing.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usage("%s takes no arguments, got %q", cmd.CommandPath(), short.Names(args))
	}
	return nil
}

// Misplaced says what is wrong with the arguments of a command that takes one model.
func Misplaced(cmd *cobra.Command, args []string) error {
	if o := cmd.Flags().Lookup("output"); o != nil && o.Changed && cmd.Flags().Lookup("o"+o.Value.String()) != nil {
		return Usage("-o%s: write --o%s, with two dashes", o.Value, o.Value) // it was read as -o utput
	}
	if err := swallowed(cmd); err != nil {
		return err
	}
	root := cmd.Root()
	var names []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			names = append(names, c.Name())
		}
	}
	for i, arg := range args {
		if i > 0 && slices.Contains(names, arg) {
			return Usage("the command comes first: rope-rewrite %s %s", arg, strings.Join(slices.Delete(slices.Clone(args), i, i+1), " "))
		}
		if key, _, found := strings.Cut(arg, "="); found && filepath.Ext(arg) != ".onnx" {
			if example := methodWith(key, givenMethods(cmd)...); example != "" {
				_, value, _ := strings.Cut(arg, "=")
				return Usage("%s must follow its method without a space; write %s=%s", arg, example, value)
			}
		}
	}
	if cmd == root && filepath.Ext(args[0]) == "" && !exists(args[0]) {
		if suggest.Same(args[0], "rewrite") {
			return Usage("rewriting needs no command: rope-rewrite MODEL.onnx")
		}
		if near := suggest.Nearest(args[0], names); near != "" {
			return Usage("%q is not a command; did you mean %s?", short.Name(args[0]), near)
		}
	}
	if len(args) == 2 && filepath.Ext(args[1]) == ".onnx" && cmd == root {
		return Usage("one model at a time, got 2; if the second is the output, write rope-rewrite %s -o %s", args[0], args[1])
	}
	if len(args) > 1 {
		return Usage("one model at a time, got %d: %q", len(args), short.Names(args))
	}
	return nil
}

// givenMethods are what the flags for methods are given.
func givenMethods(cmd *cobra.Command) (names []string) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if list, ok := f.Value.(pflag.SliceValue); ok {
			names = append(names, list.GetSlice()...)
		}
	})
	return names
}

// swallowed refuses a flag that took the next one as its value.
func swallowed(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		what, _ := pflag.UnquoteUsage(f)
		for _, value := range values {
			if name, dashed := strings.CutPrefix(value, "--"); dashed && cmd.Flags().Lookup(name) != nil {
				err = Usage("--%s needs a value before %s; write --%s %s", f.Name, value, f.Name, what)
			}
		}
	})
	return err
}
