package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// TestDocumentedCommands holds that each command that the README, a page of docs/ or a help text shows has
// the sub-command, the flags and the methods that are written there. Package docblocks runs what can be run.
func TestDocumentedCommands(t *testing.T) {
	tried := 0
	try := func(where, text string) {
		for _, command := range commands(text) {
			command = withoutShell(command)
			args := arguments(command)
			if strings.ContainsAny(command, "…`|") || len(args) < 2 { // a form, or the name of a sub-command in a sentence
				continue
			}
			tried++
			t.Run(where+"/"+command, func(t *testing.T) {
				root := newRoot()
				if sub, _, err := root.Find(args[:1]); err == nil && sub != root {
					parses(t, command)
				} else if strings.HasPrefix(args[1], "-") { // otherwise a sentence that begins with the program's name
					rewrites(t, root, args)
				}
			})
		}
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md", "../../scripts/dist/README.md") {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		try(filepath.Base(page), strings.ReplaceAll(fences(string(data)), "$ ", "")+"\n"+cells(string(data)))
	}
	var each func(*cobra.Command)
	each = func(c *cobra.Command) {
		try(c.CommandPath(), c.Long+"\n"+c.Example)
		for _, sub := range c.Commands() {
			each(sub)
		}
	}
	each(newRoot())
	if tried < 50 {
		t.Errorf("%d commands were found, more were expected", tried)
	}
}

// rewrites holds that the command without a sub-command has the flags that are named.
func rewrites(t *testing.T, root *cobra.Command, args []string) {
	t.Helper()
	err := root.ParseFlags(args)
	if err == nil {
		err = root.ValidateArgs(root.Flags().Args())
	}
	if err != nil {
		t.Error(err)
		return
	}
	for _, axis := range []rope.Axis{rope.ScalingAxis, rope.PositionsAxis, rope.MaskAxis} {
		given, err := root.Flags().GetStringArray(axis.String())
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range given {
			if strings.Contains(spec, "…") {
				continue // a long list is left out
			}
			if _, err := cli.AddEdit(&rewrite.Options{}, axis, spec); err != nil {
				t.Error(err)
			}
		}
	}
}

// fences are the blocks of a page.
func fences(page string) (text string) {
	for i, part := range strings.Split(page, "\n```") {
		if i%2 == 1 {
			_, body, _ := strings.Cut(part, "\n")
			text += body + "\n"
		}
	}
	return text
}

// withoutShell leaves of a line what the command gets.
func withoutShell(command string) string {
	for _, end := range []string{" && ", " | ", " > ", "  #"} {
		command, _, _ = strings.Cut(command, end)
	}
	return strings.TrimSuffix(strings.NewReplacer("'", `"`).Replace(command), ")")
}
