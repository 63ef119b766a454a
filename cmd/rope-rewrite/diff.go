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
				progress := cli.NewProgress(cmd.ErrOrStderr())
				defer progress.Done()
				work := cli.Work[*modeldiff.Report]{
					Do: func(ctx context.Context, p modelfiles.Pair, say func(string)) (*modeldiff.Report, error) {
						opts.Progress = say
						return modeldiff.Run(ctx, p.A, p.B, modeldiff.Options{Rewrite: opts})
					},
					Text: difference, Done: "compared", Failed: "could not be compared", Alone: cli.ExitDiffers,
					Code:   differs,
					Unable: func(error) int { return cli.ExitFailed },
				}
				if cli.IsFolder(args[0]) {
					return work.Folders(ctx, c, cmd, args, progress)
				}
				d, err := work.Do(ctx, modelfiles.Pair{A: args[0], B: args[1]}, progress.Say)
				progress.Done()
				if err != nil {
					return err
				}
				if err := c.Show(cmd, d, func(w *cli.Writer) { difference(w, d) }); err != nil {
					return err
				}
				return cli.Reported(differs(d))
			})
		},
	}
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

// difference prints a diff: lines that begin with A are the first model's.
func difference(w *cli.Writer, d *modeldiff.Report) {
	w.Line("%s", cli.Wrap("A "+d.A, "  "))
	w.Line("%s", cli.Wrap("B "+d.B, "  "))
	for _, part := range []struct {
		title string
		list  []modeldiff.Change
	}{{"method", d.Methods}, {"attention", d.Sites}, {"input", d.Inputs}, {"output", d.Outputs}, {"operator set", d.Opsets}, {"metadata", d.Metadata}, {"weight", d.Weights.Changed}} {
		w.List(alike(part.title, part.list))
	}
	var nodes []string
	for _, n := range d.Nodes {
		nodes = append(nodes, cli.Wrap(fmt.Sprintf("  %-40s %7d %7d  %+d", n.Op, n.A, n.B, n.B-n.A), "    "))
	}
	if len(nodes) > 0 {
		w.Line("nodes %44s %7s", "A", "B")
	}
	w.List(nodes)
	if len(nodes) == 0 && !d.Graph {
		w.Line("%s", cli.Wrap("nodes: the same number of each op; attributes, names, wiring, order or the places of external data differ", "  "))
	}
	weights := d.Weights
	w.Line("%s", cli.Wrap(fmt.Sprintf("weights and other constants: %d the same, %d changed, %d renamed, %d only in A, %d only in B; %.1f MB were read to compare them",
		weights.Same, len(weights.Changed), len(weights.Renamed), len(weights.OnlyA), len(weights.OnlyB), float64(weights.Read)/1e6), "  "))
	w.Line("%s", cli.Wrap(fmt.Sprintf("bytes: %d and %d, in external data %d and %d", d.Bytes[0], d.Bytes[1], d.External[0], d.External[1]), "  "))
	for _, note := range d.Notes {
		w.Line("%s", cli.Wrap(note, "  "))
	}
	if d.Same {
		w.Line("SAME.")
		return
	}
	w.Line("DIFFERENT.")
}

// alike writes changes. Those with the same A and B become one entry.
func alike(title string, list []modeldiff.Change) (lines []string) {
	var order []modeldiff.Change
	names := map[modeldiff.Change][]string{}
	for _, c := range list {
		key := modeldiff.Change{A: c.A, B: c.B}
		if names[key] == nil {
			order = append(order, key)
		}
		names[key] = append(names[key], c.Name)
	}
	for _, c := range order {
		who := names[c][0]
		if more := len(names[c]) - 1; more > 0 {
			who += fmt.Sprintf(" and %d more", more)
		}
		lines = append(lines, cli.Wrap(title+" "+who, "    ")+"\n"+side("A", c.A)+"\n"+side("B", c.B))
	}
	return lines
}

func side(name, text string) string {
	if text == "" {
		text = "-"
	}
	return cli.Wrap("  "+name+" "+text, "      ")
}
