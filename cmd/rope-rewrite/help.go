package main

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// usage prints what follows a command's description in its help, within the
// width that every terminal has.
func usage(cmd *cobra.Command) error {
	w := &writer{out: cmd.OutOrStdout()}
	w.line("Usage:")
	line := func(c *cobra.Command) string {
		c.DisableFlagsInUseLine = true // each says itself which flags matter
		return c.UseLine()
	}
	if cmd.Runnable() {
		w.line("  %s", line(cmd))
	}
	var commands []*cobra.Command
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			commands = append(commands, c)
		}
	}
	for _, c := range commands {
		w.line("  %s", line(c))
	}
	if len(commands) > 0 {
		w.line("\nCommands:")
	}
	for _, c := range commands {
		w.line("%s", wrap(fmt.Sprintf("  %-10s %s", c.Name(), c.Short), "             "))
	}
	for _, part := range []struct {
		title string
		flags *pflag.FlagSet
	}{{"Flags", cmd.LocalFlags()}, {"Flags of every command", cmd.InheritedFlags()}} {
		if part.flags.HasAvailableFlags() {
			w.line("\n%s:\n%s", part.title, strings.TrimRight(part.flags.FlagUsagesWrapped(width), "\n"))
		}
	}
	return w.err
}

// changing walks over the methods that change something, axis by axis.
func changing() iter.Seq[rope.Method] {
	return func(yield func(rope.Method) bool) {
		for m := range rope.Methods() {
			if !m.Neutral && !yield(m) {
				return
			}
		}
	}
}

// names lists methods of an axis: "theta, linear or yarn".
func names(methods iter.Seq[rope.Method], axis rope.Axis) string {
	var list []string
	for m := range methods {
		if m.Axis == axis {
			list = append(list, m.Name)
		}
	}
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " or " + list[last]
}

// methodFlags lists what could be added to a command line:
// "--scaling theta, linear or yarn, --positions string and --mask causal or anchor".
func methodFlags() string {
	var axes []rope.Axis
	var list []string
	for m := range changing() {
		if !slices.Contains(axes, m.Axis) {
			axes = append(axes, m.Axis)
			list = append(list, fmt.Sprintf("--%v %s", m.Axis, names(changing(), m.Axis)))
		}
	}
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " and " + list[last]
}
