package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/schema"
	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// Common are the flags of every command.
type Common struct {
	Runtime string
	Library string
	JSON    bool

	prints map[*cobra.Command][]reflect.Type // what each command prints with --json
}

// Prints says of what types the values are that a command shows: their schema is the one of its --json.
func (c *Common) Prints(cmd *cobra.Command, values ...any) {
	if c.prints == nil {
		c.prints = map[*cobra.Command][]reflect.Type{}
	}
	for _, v := range values {
		c.prints[cmd] = append(c.prints[cmd], reflect.TypeOf(v))
	}
}

// Printed are the types of what a command prints with --json, and nil where that has no effect.
func (c *Common) Printed(cmd *cobra.Command) []reflect.Type {
	if list := c.prints[cmd]; list != nil {
		return append(slices.Clone(list), reflect.TypeFor[FailureReport]())
	}
	return nil
}

// FailureReport is what a command prints with --json where it ends before there is anything else to print.
type FailureReport struct {
	Error Failure `json:"error"`
}

// Failure is what went wrong.
type Failure struct {
	Message string `json:"message"` // the sentence that stands on stderr too
	Exit    int    `json:"exit"`    // the exit code
}

// Flags adds them to the root command.
func (c *Common) Flags(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVar(&c.Runtime, "onnxruntime", "", "`PATH` of the ONNX Runtime library (environment: "+customop.RuntimeVariable+")")
	f.StringVar(&c.Library, "ops-library", "", "`PATH` of the op library librope_ops (environment: "+customop.LibraryVariable+")")
	f.BoolVar(&c.JSON, "json", false, "print JSON on stdout instead of text, an error too")
}

// Options are the part of the rewriter's options that every command shares:
// models run in a child process, because a hostile graph may end it.
func (c *Common) Options() (rewrite.Options, error) {
	worker, err := Self()
	return rewrite.Options{Evaluation: rewrite.Evaluation{Runtime: c.Runtime, Library: c.Library, Worker: []string{worker}}}, err
}

// ParseProveWith reads PATH or PATH:provider=NAME. A path may have colons of its own.
func ParseProveWith(text string) (with rewrite.ProveWith, _ error) {
	with.Runtime = text
	if i := strings.LastIndex(text, ":"); i >= 0 && strings.Contains(text[i:], "=") {
		key, value, _ := strings.Cut(text[i+1:], "=")
		if key != "provider" || value == "" {
			return with, fmt.Errorf("%s: expected PATH or PATH:provider=NAME, for example PATH:provider=CUDA", text)
		}
		with = rewrite.ProveWith{Runtime: text[:i], Provider: value}
	}
	if with.Runtime == "" {
		return with, fmt.Errorf("%q: expected the path of an ONNX Runtime library, or PATH:provider=NAME", short.Name(text))
	}
	return with, nil
}

// ShowReport writes a report as JSON or as text; warnings of the text form go to stderr.
func (c *Common) ShowReport(cmd *cobra.Command, report *rewrite.Report, text func(*Writer)) error {
	if !c.JSON {
		Warn(cmd, report.Warnings)
	}
	return c.Show(cmd, report, text)
}

// Warn writes warnings to stderr.
func Warn(cmd *cobra.Command, warnings []string) {
	var lines []string
	for _, w := range warnings {
		lines = append(lines, Wrap("warning: "+w, "  "))
	}
	(&Writer{out: cmd.ErrOrStderr()}).List(lines)
}

// Show writes a result as JSON or as text.
func (c *Common) Show(cmd *cobra.Command, value any, text func(*Writer)) error {
	t := reflect.TypeOf(value)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if !slices.Contains(c.prints[cmd], t) {
		return fmt.Errorf("%s prints %v, which its schema does not have: please report this", cmd.CommandPath(), t)
	}
	if c.JSON {
		return PrintJSON(cmd.OutOrStdout(), value)
	}
	w := &Writer{out: cmd.OutOrStdout()}
	text(w)
	return w.err
}

// PrintJSON writes a value as indented JSON.
func PrintJSON(stdout io.Writer, value any) error {
	encoder := json.NewEncoder(stdout)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(schema.Fill(value))
}

// NoAttention reports a model without rotary attention.
func (c *Common) NoAttention(cmd *cobra.Command, report *rewrite.Report, err error) error {
	if c.JSON {
		if err := PrintJSON(cmd.OutOrStdout(), report); err != nil {
			return err
		}
	}
	return Exit(ExitNoAttention, fmt.Errorf("%s: %w", report.Model, err))
}
