package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/internal/suggest"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// What is typed by mistake, and what to write instead.

// sameName lets flags be written in any case, and with _ instead of -.
func sameName(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	return pflag.NormalizedName(strings.ReplaceAll(strings.ToLower(name), "_", "-"))
}

// FlagError says in a sentence what is wrong with a flag.
func FlagError(cmd *cobra.Command, err error) error {
	unknown, lacks, invalid := (*pflag.NotExistError)(nil), (*pflag.ValueRequiredError)(nil), (*pflag.InvalidValueError)(nil)
	switch {
	case errors.As(err, &unknown):
		if word := unknown.GetSpecifiedShortnames(); word != "" {
			return unknownFlag(cmd, "-", word)
		}
		return unknownFlag(cmd, "--", unknown.GetSpecifiedName())
	case errors.As(err, &lacks):
		what, _ := pflag.UnquoteUsage(lacks.GetFlag())
		return Usage("--%s needs a value; write --%s %s", lacks.GetFlag().Name, lacks.GetFlag().Name, what)
	case errors.As(err, &invalid):
		name, value := invalid.GetFlag().Name, invalid.GetValue()
		switch invalid.GetFlag().Value.Type() {
		case "bool":
			return Usage("--%s=%s: this flag takes no value", name, value)
		case "float64":
			return Usage("--%s %q: expected a number", name, short.Name(value))
		case "int":
			return Usage("--%s %q: expected a whole number", name, short.Name(value))
		}
		return Usage("--%s %q %w", name, short.Name(value), errors.Unwrap(invalid))
	}
	return Exit(ExitUsage, err)
}

// unknownFlag says what an unknown flag was probably meant to be.
func unknownFlag(cmd *cobra.Command, dashes, word string) error {
	word, _, _ = strings.Cut(word, "=")
	meant := func(format string, args ...any) error {
		return Usage("unknown flag %s%s; %s", dashes, word, fmt.Sprintf(format, args...))
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
			return Usage("--%s is not a flag of this command; it belongs to %s", f.Name, use)
		}
	}
	for m := range rope.Methods() {
		if suggest.Same(m.Name, word) {
			return meant("%s is a method: write --%v %s", m.Name, m.Axis, m.Name)
		}
	}
	if name := suggest.Nearest(word, names); name != "" {
		return meant("did you mean --%s?", name)
	}
	switch {
	case suggest.Same(word, "max-position-embeddings"), suggest.Same(word, "max-length"), suggest.Same(word, "context-length"):
		return meant("give the context with --context TOKENS")
	case suggest.Same(word, "model"), suggest.Same(word, "input"):
		return meant("the model needs no flag: rope-rewrite MODEL.onnx")
	}
	if example := methodWith(word); example != "" {
		return meant("it is a key of a method, e.g. %s=…", example)
	}
	return Usage("unknown flag %s%s; rope-rewrite --help-all lists all", dashes, word)
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

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// hubName is how hubs name models: owner and name.
var hubName = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$`)

// nearFile says, as a clause, what a missing file may be: a model of a hub, or the model in its folder that is
// called most like it.
func nearFile(path string) string {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil && hubName.MatchString(path) {
		return fmt.Sprintf("; if it is the name of a model on a hub, download its folder first, for example with hf download %s --local-dir %s", path, filepath.Base(path))
	}
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
