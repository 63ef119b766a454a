package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newManuals writes man pages and completions for shells into a folder, for releases.
func newManuals() *cobra.Command {
	return &cobra.Command{
		Use:    "manuals DIR",
		Short:  "Write man pages and completions for shells into a folder",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(cmd *cobra.Command, args []string) error { return writeManuals(cmd.Root(), args[0]) },
	}
}

func writeManuals(root *cobra.Command, folder string) error {
	man, completions := filepath.Join(folder, "man", "man1"), filepath.Join(folder, "completions")
	for _, dir := range []string{man, completions} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	root.DisableAutoGenTag = true // it has today's date
	header := &doc.GenManHeader{Title: "ROPE-REWRITE", Section: "1", Source: "rope-rewrite " + root.Version, Manual: "rope-rewrite"}
	if err := doc.GenManTree(root, header, man); err != nil {
		return err
	}
	for name, write := range map[string]func(string) error{
		"rope-rewrite.bash": func(path string) error { return root.GenBashCompletionFileV2(path, true) },
		"_rope-rewrite":     root.GenZshCompletionFile,
		"rope-rewrite.fish": func(path string) error { return root.GenFishCompletionFile(path, true) },
		"rope-rewrite.ps1":  root.GenPowerShellCompletionFile,
	} {
		if err := write(filepath.Join(completions, name)); err != nil {
			return err
		}
	}
	return nil
}
