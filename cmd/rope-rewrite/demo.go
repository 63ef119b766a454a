package main

import (
	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/demo"
)

// writtenDemo is where the model is, as --json prints it.
type writtenDemo struct {
	Path string `json:"path"`
}

func newDemo(c *cli.Common) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo DIR",
		Short: "Write a small model to try the other commands on",
		Long: `Writes a new folder with a small model and what exporters leave beside one:
config.json, tokenizer, chat template. It is a Llama of two layers and random
weights, as Optimum exports it. So its answers say nothing, and every check of
the other commands works on it.

  rope-rewrite demo llama
  rope-rewrite llama -o llama-long --scaling yarn:factor=4`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usage("demo takes the name of a new folder; write rope-rewrite demo DIR")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := demo.Write(args[0]); err != nil {
				return err
			}
			return c.Show(cmd, writtenDemo{args[0]}, func(w *cli.Writer) { w.Line("Wrote %s.", args[0]) })
		},
	}
	c.Prints(cmd, writtenDemo{})
	return cmd
}
