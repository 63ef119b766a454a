package main

import (
	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/internal/version"
)

func newVersion(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this command, and what it was built from",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := version.This()
			if c.json {
				return printJSON(cmd.OutOrStdout(), v)
			}
			w := &writer{out: cmd.OutOrStdout()}
			text := v.String()
			if v.Revision == "" {
				text += " (revision unknown)"
			}
			w.line("rope-rewrite %s", text)
			w.line("writes op specifications 1 to %d", v.SpecVersion)
			w.line("built with %s for %s", v.Go, v.System)
			return w.err
		},
	}
}
