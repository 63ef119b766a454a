package main

import (
	"fmt"
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

// methodFlags lists the flags that take a method: "--scaling, --positions and --mask".
func methodFlags() string {
	var flags []string
	for m := range rope.Methods() {
		if flag := "--" + m.Axis.String(); !slices.Contains(flags, flag) {
			flags = append(flags, flag)
		}
	}
	last := len(flags) - 1
	return strings.Join(flags[:last], ", ") + " and " + flags[last]
}
