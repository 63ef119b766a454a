package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/modeldiff"
)

func newDiff(c *common) *cobra.Command {
	var limits limits
	command := &cobra.Command{
		Use:   "diff A.onnx B.onnx",
		Short: "Say in what two models differ: methods, sites, nodes, inputs, weights",
		Long: `Says in what two models differ: what their attentions compute, nodes by op,
inputs and outputs, operator sets, metadata, weights (by SHA-256; what is the
same bytes of one file is not read), bytes. Works on models that others wrote,
and without weights. Exit code 0 when nothing differs, 5 when something does.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError("two models are compared, A.onnx and B.onnx; got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := c.options()
			if err != nil {
				return err
			}
			return limits.within(cmd, &opts, func(ctx context.Context) error {
				progress := newProgress(cmd.ErrOrStderr())
				defer progress.done()
				opts.Progress = progress.say
				d, err := modeldiff.Run(ctx, args[0], args[1], modeldiff.Options{Rewrite: opts})
				progress.done()
				if err != nil {
					return err
				}
				if err := c.show(cmd, d, func(w *writer) { difference(w, d) }); err != nil {
					return err
				}
				if !d.Same {
					return &exitError{exitDiffers, errReported}
				}
				return nil
			})
		},
	}
	limits.flags(command)
	return command
}

// difference prints a diff: lines that begin with A are the first model's.
func difference(w *writer, d *modeldiff.Report) {
	w.line("%s", wrap("A "+d.A, "  "))
	w.line("%s", wrap("B "+d.B, "  "))
	for _, part := range []struct {
		title string
		list  []modeldiff.Change
	}{{"method", d.Methods}, {"attention", d.Sites}, {"input", d.Inputs}, {"output", d.Outputs}, {"operator set", d.Opsets}, {"metadata", d.Metadata}, {"weight", d.Weights.Changed}} {
		w.list(alike(part.title, part.list))
	}
	var nodes []string
	for _, n := range d.Nodes {
		nodes = append(nodes, wrap(fmt.Sprintf("  %-40s %7d %7d  %+d", n.Op, n.A, n.B, n.B-n.A), "    "))
	}
	if len(nodes) > 0 {
		w.line("nodes %44s %7s", "A", "B")
	}
	w.list(nodes)
	if len(nodes) == 0 && !d.Graph {
		w.line("%s", wrap("nodes: as many of each op; attributes, names, wiring, order, or where external data lies differ", "  "))
	}
	weights := d.Weights
	w.line("%s", wrap(fmt.Sprintf("weights and other constants: %d the same, %d changed, %d renamed, %d only in A, %d only in B; %.1f MB were read to compare them",
		weights.Same, len(weights.Changed), len(weights.Renamed), len(weights.OnlyA), len(weights.OnlyB), float64(weights.Read)/1e6), "  "))
	w.line("%s", wrap(fmt.Sprintf("bytes: %d and %d, in external data %d and %d", d.Bytes[0], d.Bytes[1], d.External[0], d.External[1]), "  "))
	for _, note := range d.Notes {
		w.line("%s", wrap(note, "  "))
	}
	if d.Same {
		w.line("SAME.")
		return
	}
	w.line("DIFFERENT.")
}

// alike writes changes, those from and to the same in one entry.
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
		lines = append(lines, wrap(title+" "+who, "    ")+"\n"+side("A", c.A)+"\n"+side("B", c.B))
	}
	return lines
}

func side(name, text string) string {
	if text == "" {
		text = "-"
	}
	return wrap("  "+name+" "+text, "      ")
}
