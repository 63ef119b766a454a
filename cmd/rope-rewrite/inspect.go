package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

func newInspect(c *common) *cobra.Command {
	var dump string
	var asRecipe bool
	var limits limits
	command := &cobra.Command{
		Use:   "inspect MODEL.onnx",
		Short: "Show sites, layouts, frequencies, masks, caches; say what can be done",
		Args:  oneModel,
		RunE: func(cmd *cobra.Command, args []string) error {
			if asRecipe {
				return printRecipe(cmd, args[0])
			}
			opts, err := c.options()
			if err != nil {
				return err
			}
			opts.DumpSites = dump
			if opts, err = opts.FindLibraries(); err != nil {
				return err
			}
			return limits.within(cmd, &opts, func(ctx context.Context) error { return c.inspect(ctx, cmd, args[0], opts) })
		},
	}
	limits.flags(command)
	command.Flags().StringVar(&dump, "dump-site", "", "write each kept site by itself, with inputs and the reason, to `DIR`: attach it to a report")
	command.Flags().BoolVar(&asRecipe, "recipe", false, "of a model that was rewritten: print what was asked for, as rope-rewrite MODEL --recipe FILE reads it")
	return command
}

func (c *common) inspect(ctx context.Context, cmd *cobra.Command, path string, opts rewrite.Options) error {
	model, err := onnx.Open(path)
	if err != nil {
		return err
	}
	defer model.Close()
	progress := newProgress(cmd.ErrOrStderr())
	defer progress.done()
	opts.Progress = progress.say
	report, err := rewrite.Inspect(ctx, model, opts)
	progress.done()
	if errors.Is(err, rewrite.ErrNoAttention) {
		return c.none(cmd, report, err)
	}
	if err != nil {
		return err
	}
	if err := c.print(cmd.OutOrStdout(), cmd.ErrOrStderr(), report, func(w *writer) { inspection(w, report) }); err != nil {
		return err
	}
	if report.Unproven() > 0 {
		return &exitError{exitPartial, errReported}
	}
	return nil
}

func inspection(w *writer, report *rewrite.Report) {
	sites(w, report)
	var shown []string
	for _, s := range report.Sites {
		if s.Attention == nil || len(s.Attention.Encoding.Frequencies) == 0 {
			continue
		}
		e := s.Attention.Encoding
		line := fmt.Sprintf("  %d frequencies from %.6g down to %.6g, gain %.6g, score scale %.6g",
			len(e.Frequencies), slices.Max(e.Frequencies), slices.Min(e.Frequencies), e.EffectiveGain(), s.Attention.EffectiveScale())
		line = strings.Join(append([]string{line}, s.Attention.DescribePositions()...), ", ")
		if line = wrap(line, "    "); !slices.Contains(shown, line) {
			shown = append(shown, line)
		}
	}
	w.list(shown)
	holdsOps := report.Again && !replaced(report)
	if holdsOps {
		carries(w, report.Definition)
	}
	if report.Record == nil {
		if !report.Again && report.Rewritten() > 0 {
			w.line("What can be done: rope-rewrite methods lists it.")
		}
		return
	}
	methods(w, report.Record.Edits)
	beforeRewrite(w, report.Record)
	if holdsOps { // what other targets wrote cannot be restored
		w.line("%s", wrap("It can be rewritten again, from these values, or restored with --restore.", ""))
	}
}

// carries says whether a rewritten model runs without the op library.
func carries(w *writer, d *rewrite.Definition) {
	if d == nil {
		w.line("It carries no definition of its op, so it runs only with the op library.")
		return
	}
	w.line("%s", wrap(fmt.Sprintf("It carries the definition of its op (%s, %s): without the op library it runs by that, slower than with it.", strings.Join(d.Ops, ", "), kilobytes(d.Bytes)), ""))
}

// beforeRewrite says what the attentions of a model were before any rewrite.
func beforeRewrite(w *writer, r *provenance.Record) {
	if len(r.Edits) == 0 {
		w.line("No method: the model computes what the original does.")
		return
	}
	w.line("Before the rewrite (graph %.12s…):", r.Graph)
	var lines []string
	for _, s := range r.Sites {
		of := rewrite.SiteOf(s)
		lines = append(lines, wrap("  "+layersText(s.Layers)+": "+describe(of), "    "))
	}
	w.list(lines)
}
