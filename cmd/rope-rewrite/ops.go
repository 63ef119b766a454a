package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/customop"
)

func newOps(c *common) *cobra.Command {
	ops := &cobra.Command{
		Use:   "ops path|version",
		Short: "Say where the op library is and what it knows",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError("ops %s? path or version was expected", args[0])
			}
			return usageError("ops what? path or version was expected")
		},
		RunE: func(*cobra.Command, []string) error { return nil }, // Args lets nothing through
	}
	ops.AddCommand(
		&cobra.Command{
			Use: "path", Short: "Print the path of the op library", Args: noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				path, err := customop.FindLibrary(customop.Options{Library: c.library})
				if err != nil {
					return err
				}
				if c.json {
					return printJSON(cmd.OutOrStdout(), map[string]string{"path": path})
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), path)
				return err
			},
		},
		&cobra.Command{
			Use: "version", Short: "Print the versions of the op library and of the specification", Args: noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				path, err := customop.FindLibrary(customop.Options{Library: c.library})
				if err != nil {
					return err
				}
				info, err := customop.InspectLibrary(path)
				if err != nil {
					return err
				}
				if c.json {
					return printJSON(cmd.OutOrStdout(), info)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\nversion %s, specification %d (this command writes %d)\n",
					info.Path, info.Version, info.SpecVersion, customop.SpecVersion)
				return err
			},
		},
	)
	return ops
}
