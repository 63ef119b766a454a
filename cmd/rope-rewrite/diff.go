package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/internal/modelfiles"
	"github.com/rope-rewrite/rope-rewrite/modeldiff"
)

func newDiff(c *cli.Common) *cobra.Command {
	var limits cli.Limits
	command := &cobra.Command{
		Use:   "diff A.onnx B.onnx",
		Short: "Show how two models differ: methods, attention, nodes, inputs, weights",
		Long: `Shows how two models differ: what their attention layers compute, nodes by op,
inputs and outputs, operator sets, metadata, weights, bytes. Weights are
compared by SHA-256; weights that both models take from the same file are not
read. Works on any models, even without their weights. Given two folders, it
compares the models that have the same name in both.

Exit code 0 when nothing differs, 5 when something differs.`,
		Args: cli.TwoModels("A.onnx", "B.onnx"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := c.Options()
			if err != nil {
				return err
			}
			return limits.Within(cmd, &opts, func(ctx context.Context) error {
				return cli.Work[*modeldiff.Report]{
					Do: func(ctx context.Context, p modelfiles.Pair, say func(string)) (*modeldiff.Report, error) {
						opts.Progress = say
						return modeldiff.Run(ctx, p.A, p.B, modeldiff.Options{Rewrite: opts})
					},
					Text: difference, Done: "compared", Failed: "could not be compared", Alone: cli.ExitDiffers,
					Code:   differs,
					Unable: func(error) int { return cli.ExitFailed },
				}.Run(ctx, c, cmd, args, cli.NewProgress(cmd.ErrOrStderr()))
			})
		},
	}
	c.Prints(command, modeldiff.Report{}, cli.OfFolder[*modeldiff.Report]{})
	limits.Flags(command)
	return command
}

// differs is the exit code of a comparison.
func differs(d *modeldiff.Report) int {
	if d.Same {
		return 0
	}
	return cli.ExitDiffers
}

// difference prints a diff: the first column is the first model's, A, the second B's.
func difference(w *cli.Writer, d *modeldiff.Report) {
	w.Text("  ", "A %s", d.A)
	w.Text("  ", "B %s", d.B)
	var alike []modeldiff.Difference
	names := map[modeldiff.Difference][]string{}
	for _, c := range d.Differences {
		switch c.What {
		case modeldiff.Renamed, modeldiff.OnlyA, modeldiff.OnlyB: // as many as a model has weights
			continue
		}
		name := c.Where
		if c.Where = ""; c.What == modeldiff.Method || c.What == modeldiff.Node {
			c.Where = name
		}
		if names[c] == nil {
			alike = append(alike, c)
		}
		names[c] = append(names[c], name)
	}
	var rows []cli.Row
	for _, c := range alike {
		all := names[c]
		if c.Where = all[0]; len(all) > 1 {
			c.Where += fmt.Sprintf(" and %d more", len(all)-1)
		}
		rows = append(rows, cli.Row{Difference: c})
	}
	cli.Differences(w, "", "A", "B", rows)
	if !d.Graph && len(d.Of(modeldiff.Node)) == 0 {
		w.Text("  ", "nodes: the same number of each op; attributes, names, wiring, order or the places of external data differ")
	}
	count := func(kind string) int { return len(d.Of(kind)) }
	w.Text("  ", "weights and other constants: %d the same, %d changed, %d renamed, %d only in A, %d only in B; %.1f MB were read to compare them",
		d.SameWeights, count(modeldiff.Weight), count(modeldiff.Renamed), count(modeldiff.OnlyA), count(modeldiff.OnlyB), float64(d.Read)/1e6)
	w.Text("  ", "bytes: %d and %d, in external data %d and %d", d.Bytes[0], d.Bytes[1], d.External[0], d.External[1])
	for _, note := range d.Notes {
		w.Text("  ", "%s", note)
	}
	if d.Same {
		w.Line("SAME.")
		return
	}
	w.Line("DIFFERENT.")
}
