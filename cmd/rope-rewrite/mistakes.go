package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rope-rewrite/rope-rewrite/internal/suggest"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// What is typed by mistake, and what to write instead.

// sameName lets flags be written in any case, and with _ in the place of -.
func sameName(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	return pflag.NormalizedName(strings.ReplaceAll(strings.ToLower(name), "_", "-"))
}

// flagError says in a sentence what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	unknown, lacks, invalid := (*pflag.NotExistError)(nil), (*pflag.ValueRequiredError)(nil), (*pflag.InvalidValueError)(nil)
	switch {
	case errors.As(err, &unknown):
		if word := unknown.GetSpecifiedShortnames(); word != "" {
			return unknownFlag(cmd, "-", word)
		}
		return unknownFlag(cmd, "--", unknown.GetSpecifiedName())
	case errors.As(err, &lacks):
		what, _ := pflag.UnquoteUsage(lacks.GetFlag())
		return usageError("--%s lacks its value; write --%s %s", lacks.GetFlag().Name, lacks.GetFlag().Name, what)
	case errors.As(err, &invalid):
		name, value := invalid.GetFlag().Name, invalid.GetValue()
		switch invalid.GetFlag().Value.Type() {
		case "bool":
			return usageError("--%s=%s: the flag stands alone, without a value", name, value)
		case "float64":
			return usageError("--%s %q: a number was expected", name, value)
		case "int":
			return usageError("--%s %q: a whole number was expected", name, value)
		}
		return usageError("--%s %q %w", name, value, errors.Unwrap(invalid))
	}
	return &exitError{exitUsage, err}
}

// unknownFlag says what a flag that the command does not have was probably meant to be.
func unknownFlag(cmd *cobra.Command, dashes, word string) error {
	word, _, _ = strings.Cut(word, "=")
	meant := func(format string, args ...any) error {
		return usageError("unknown flag %s%s; %s", dashes, word, fmt.Sprintf(format, args...))
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if i := slices.IndexFunc(names, func(n string) bool { return suggest.Same(n, word) }); i >= 0 {
		return meant("write --%s, with two dashes", names[i])
	}
	for _, c := range append([]*cobra.Command{cmd.Root()}, cmd.Root().Commands()...) {
		if f := c.Flags().Lookup(word); f != nil {
			use, _, _ := strings.Cut(c.UseLine(), " [")
			return usageError("--%s is no flag of this command, but one of %s", f.Name, use)
		}
	}
	for m := range rope.Methods() {
		if suggest.Same(m.Name, word) {
			return meant("%s is a method, write --%v %s", m.Name, m.Axis, m.Name)
		}
	}
	if name := suggest.Nearest(word, names); name != "" {
		return meant("did you mean --%s?", name)
	}
	switch {
	case suggest.Same(word, "max-position-embeddings"), suggest.Same(word, "max-length"), suggest.Same(word, "context-length"):
		return meant("the context that the model is meant for is --context TOKENS")
	case suggest.Same(word, "model"), suggest.Same(word, "input"):
		return meant("the model stands without a flag: rope-rewrite MODEL.onnx")
	}
	if example := methodWith(word); example != "" {
		return meant("it is a key of methods, for example %s=…", example)
	}
	return usageError("unknown flag %s%s; rope-rewrite --help-all lists all", dashes, word)
}

// methodWith returns the first method that has a key, with its flag, up to the
// key; "" if there is none. Methods that are given already come first.
func methodWith(key string, given ...string) string {
	for _, anyOne := range []bool{false, true} {
		for m := range rope.Methods() {
			if !anyOne && !slices.ContainsFunc(given, func(name string) bool { return suggest.Same(name, m.Name) }) {
				continue
			}
			for _, p := range m.Params {
				if suggest.Same(p.Name, key) {
					return fmt.Sprintf("--%v %s:%s", m.Axis, m.Name, p.Name)
				}
			}
		}
	}
	return ""
}

// choices are the words that flags beside the methods' take first.
var choices = []struct {
	flag  string
	words []string
	all   string // of what is expected
}{
	{"documents", []string{"input", "separator"}, "input, input:NAME or separator:TOKEN"},
	{"kv", []string{"growing", "fixed"}, "growing or fixed:capacity=N"},
	{"logits", []string{"all", "last"}, "all, last or last:input=NAME"},
	{"base", []string{"original", "carried"}, "original or carried"},
	{"cache", []string{"rotated", "raw"}, "rotated or raw"},
	{"precision", []string{"exact", "fast"}, "exact or fast"},
	{"target", targets(), strings.Join(targets(), " or ")},
	{"definition", []string{"function", "none"}, "function or none"},
	{"weights", []string{"copy", "link"}, "copy or link"},
}

// otherFlag says, as an error, to which other flag a value belongs; nil if to none.
func otherFlag(flag, text string) error {
	name, _, _ := strings.Cut(text, ":")
	name = strings.TrimSpace(name)
	for m := range rope.Methods() {
		if m.Axis.String() == flag && suggest.Same(m.Name, name) {
			return nil // words of other flags may be called the same
		}
	}
	for _, c := range choices {
		if c.flag != flag && slices.ContainsFunc(c.words, func(w string) bool { return suggest.Same(w, name) }) {
			return fmt.Errorf("%s is a value of --%s; write --%s %s", name, c.flag, c.flag, text)
		}
	}
	for m := range rope.Methods() {
		if m.Axis.String() != flag && suggest.Same(m.Name, name) {
			return fmt.Errorf("%s is a method of --%v; write --%v %s", m.Name, m.Axis, m.Axis, text)
		}
	}
	return nil
}

// choose returns which of a flag's words the first part of text is, before a colon.
func choose(flag, text string) (string, error) {
	name, _, _ := strings.Cut(text, ":")
	name = strings.TrimSpace(name)
	for _, c := range choices {
		if c.flag != flag {
			continue
		}
		for _, w := range c.words {
			if suggest.Same(w, name) {
				return w, nil
			}
		}
		if err := otherFlag(flag, text); err != nil {
			return "", err
		}
		return "", fmt.Errorf("%q: %s was expected%s", text, c.all, suggest.Hint(name, c.words))
	}
	return "", fmt.Errorf("--%s has no words", flag)
}

// misplaced says what is wrong with the arguments of a command that takes one model.
func misplaced(cmd *cobra.Command, args []string) error {
	if o := cmd.Flags().Lookup("output"); o != nil && o.Changed && cmd.Flags().Lookup("o"+o.Value.String()) != nil {
		return usageError("-o%s: write --o%s, with two dashes", o.Value, o.Value) // it was read as -o utput
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
			return usageError("the command stands first: rope-rewrite %s %s", arg, strings.Join(slices.Delete(slices.Clone(args), i, i+1), " "))
		}
		if key, _, found := strings.Cut(arg, "="); found && filepath.Ext(arg) != ".onnx" {
			if example := methodWith(key, givenMethods(cmd)...); example != "" {
				_, value, _ := strings.Cut(arg, "=")
				return usageError("%s belongs to its method, without a space: %s=%s", arg, example, value)
			}
		}
	}
	if cmd == root && filepath.Ext(args[0]) == "" && !exists(args[0]) {
		if suggest.Same(args[0], "rewrite") {
			return usageError("rewriting is what rope-rewrite does without a command: rope-rewrite MODEL.onnx")
		}
		if near := suggest.Nearest(args[0], names); near != "" {
			return usageError("%q is no command; did you mean %s?", args[0], near)
		}
	}
	if len(args) == 2 && filepath.Ext(args[1]) == ".onnx" && cmd == root {
		return usageError("one model at a time, got 2; if the second is the output, write rope-rewrite %s -o %s", args[0], args[1])
	}
	if len(args) > 1 {
		return usageError("one model at a time, got %d: %q", len(args), args)
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
				err = usageError("--%s lacks its value before %s; write --%s %s", f.Name, value, f.Name, what)
			}
		}
	})
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// nearFile says which model in the folder of a missing file has a name like it,
// as a clause.
func nearFile(path string) string {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return ""
	}
	var models []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".onnx" {
			models = append(models, e.Name())
		}
	}
	if name := suggest.Nearest(filepath.Base(path), models); name != "" {
		return "; did you mean " + filepath.Join(filepath.Dir(path), name) + "?"
	}
	return ""
}
