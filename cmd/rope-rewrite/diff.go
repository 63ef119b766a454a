package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/modeldiff"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
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
				if cli.IsFolder(args[0]) {
					return diffFolders(c, ctx, cmd, args, opts)
				}
				progress := cli.NewProgress(cmd.ErrOrStderr())
				defer progress.Done()
				opts.Progress = progress.Say
				d, err := modeldiff.Run(ctx, args[0], args[1], modeldiff.Options{Rewrite: opts})
				progress.Done()
				if err != nil {
					return err
				}
				if err := c.Show(cmd, d, func(w *cli.Writer) { difference(w, d) }); err != nil {
					return err
				}
				if !d.Same {
					return cli.Exit(cli.ExitDiffers, cli.ErrReported)
				}
				return nil
			})
		},
	}
	limits.Flags(command)
	return command
}

// diffFolders compares the models of two folders, in pairs.
func diffFolders(c *cli.Common, ctx context.Context, cmd *cobra.Command, folders []string, opts rewrite.Options) error {
	list, all, err := cli.Pairs[*modeldiff.Report](folders)
	if err != nil {
		return err
	}
	progress := cli.NewProgress(cmd.ErrOrStderr())
	defer progress.Done()
	same := len(all.Alone) == 0
	for i, p := range list {
		opts.Progress = cli.Each(progress.Say, i, len(list), p.B)
		d, err := modeldiff.Run(ctx, p.A, p.B, modeldiff.Options{Rewrite: opts})
		if err == nil {
			all.Models, same = append(all.Models, d), same && d.Same
		} else if err := all.Skip(ctx, p.B, err); err != nil {
			return err
		}
	}
	progress.Done()
	if err := c.Show(cmd, all, func(w *cli.Writer) { all.Text(w, "compared", difference) }); err != nil {
		return err
	}
	switch {
	case len(all.Skipped) > 0:
		return cli.Exit(cli.ExitFailed, fmt.Errorf("%d of %d pairs of models could not be compared", len(all.Skipped), len(list)))
	case !same:
		return cli.Exit(cli.ExitDiffers, cli.ErrReported)
	}
	return nil
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
