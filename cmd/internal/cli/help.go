package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// firstScreen is what the command says of itself on one screen of 80 × 24.
const firstScreen = `Extends the context of a language model that is exported to ONNX.

  a longer context             rope-rewrite model.onnx --scaling SPEC
  a model folder               rope-rewrite FOLDER --scaling SPEC
  which method helps           rope-rewrite eval FOLDER --method none \
                                 --method "scaling SPEC"
  fuse attention only          rope-rewrite model.onnx
  only the nearest keys        rope-rewrite model.onnx \
                                 --mask sliding-window:window=4k
  what is in a model           rope-rewrite inspect model.onnx
  check the result             rope-rewrite validate model.onnx model.rope.onnx

It verifies each layer, and then writes model.rope.onnx, or FOLDER.rope, beside
the input. -o gives another name, --dry-run writes nothing. 4k is 4096 tokens.

  rope-rewrite methods [NAME]  every SPEC, or one with its keys
  rope-rewrite --help-all      every command and flag
  rope-rewrite COMMAND --help  the flags of one
  rope-rewrite doctor          what is installed, what is missing, what to do`

// Dress gives the command its help, and its sentences for what is typed by mistake.
func Dress(root *cobra.Command) {
	root.SetFlagErrorFunc(FlagError)
	root.SetGlobalNormalizationFunc(sameName)
	root.SetUsageFunc(usage)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { help(cmd) })
	root.DisableSuggestions = true // Misplaced says more
	root.CompletionOptions.HiddenDefaultCmd = true
}

// help prints the first screen, or a command's description and flags.
func help(cmd *cobra.Command) {
	if cmd == cmd.Root() {
		fmt.Fprintln(cmd.OutOrStdout(), firstScreen)
		return
	}
	AllHelp(cmd)
}

// AllHelp prints a command's description, its commands and its flags.
func AllHelp(cmd *cobra.Command) error {
	text := cmd.Long
	if text == "" {
		text = cmd.Short
	}
	if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n\n", text); err != nil {
		return err
	}
	return cmd.Usage()
}

// usage prints what follows a command's description in its help, within the
// width that every terminal has.
func usage(cmd *cobra.Command) error {
	w := &Writer{out: cmd.OutOrStdout()}
	w.Line("Usage:")
	line := func(c *cobra.Command) string {
		c.DisableFlagsInUseLine = true // each Use names the flags that matter
		return c.UseLine()
	}
	if cmd.Runnable() {
		w.Line("  %s", line(cmd))
	}
	var commands []*cobra.Command
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			commands = append(commands, c)
		}
	}
	for _, c := range commands {
		w.Line("  %s", line(c))
	}
	if len(commands) > 0 {
		w.Line("\nCommands:")
	}
	for _, c := range commands {
		w.Line("%s", Wrap(fmt.Sprintf("  %-10s %s", c.Name(), c.Short), "             "))
	}
	for _, part := range []struct {
		title string
		flags *pflag.FlagSet
	}{{"Flags", cmd.LocalFlags()}, {"Flags of every command", cmd.InheritedFlags()}} {
		if part.flags.HasAvailableFlags() {
			w.Line("\n%s:\n%s", part.title, strings.TrimRight(part.flags.FlagUsagesWrapped(Width), "\n"))
		}
	}
	return w.err
}

// MethodFlags lists the flags that take a method: "--scaling, --positions or --mask".
func MethodFlags() string {
	var flags []string
	for m := range rope.Methods() {
		if flag := "--" + m.Axis.String(); !slices.Contains(flags, flag) {
			flags = append(flags, flag)
		}
	}
	last := len(flags) - 1
	return strings.Join(flags[:last], ", ") + " or " + flags[last]
}
