package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/recipe"
	"github.com/rope-rewrite/rope-rewrite/internal/modelfiles"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
)

func newInspect(c *cli.Common) *cobra.Command {
	var dump string
	var asRecipe bool
	var limits cli.Limits
	command := &cobra.Command{
		Use:   "inspect MODEL.onnx|FOLDER",
		Short: "Show attention layers: layout, frequencies, mask, cache, and what can be done",
		Args:  cli.OneModel,
		RunE: func(cmd *cobra.Command, args []string) error {
			if asRecipe && cli.IsFolder(args[0]) {
				return cli.Usage("--recipe takes one model, and %s is a folder", args[0])
			}
			if asRecipe {
				return printRecipe(cmd, args[0])
			}
			opts, err := c.Options()
			if err != nil {
				return err
			}
			opts.DumpSites = dump
			if opts, err = opts.FindLibraries(); err != nil {
				return err
			}
			return limits.Within(cmd, &opts, func(ctx context.Context) error {
				if cli.IsFolder(args[0]) {
					return inspectFolder(c, ctx, cmd, args[0], opts)
				}
				return inspect(c, ctx, cmd, args[0], opts)
			})
		},
	}
	c.Prints(command, rewrite.Report{}, cli.OfFolder[*rewrite.Report]{})
	limits.Flags(command)
	command.Flags().StringVar(&dump, "dump-site", "", "for a bug report: write each unchanged layer to `DIR` as a model of its own, with inputs and the reason")
	command.Flags().BoolVar(&asRecipe, "recipe", false, "print the recipe of a rewritten model, which rope-rewrite MODEL --recipe FILE reads")
	return command
}

func inspect(c *cli.Common, ctx context.Context, cmd *cobra.Command, path string, opts rewrite.Options) error {
	progress := cli.NewProgress(cmd.ErrOrStderr())
	defer progress.Done()
	opts.Progress = progress.Say
	report, err := inspected(ctx, path, opts)
	progress.Done()
	if errors.Is(err, rewrite.ErrNoAttention) {
		return c.NoAttention(cmd, report, err)
	}
	if err != nil {
		return err
	}
	if err := c.ShowReport(cmd, report, func(w *cli.Writer) { inspection(w, report) }); err != nil {
		return err
	}
	return cli.Reported(unproven(report))
}

// inspectFolder shows every model of a folder. Those without rotary attention are named.
func inspectFolder(c *cli.Common, ctx context.Context, cmd *cobra.Command, folder string, opts rewrite.Options) error {
	return cli.Work[*rewrite.Report]{
		Do: func(ctx context.Context, p modelfiles.Pair, say func(string)) (*rewrite.Report, error) {
			opts.Progress = say
			return inspected(ctx, p.B, opts)
		},
		Text: inspection, Done: "inspected", Failed: "could not be inspected",
		Code:    unproven,
		Unable:  func(err error) int { return cli.FailedUnless(errors.Is(err, rewrite.ErrNoAttention)) },
		Nothing: cli.Exit(cli.ExitNoAttention, fmt.Errorf("no model in %s has rotary attention", folder)),
	}.Folders(ctx, c, cmd, []string{folder}, cli.NewProgress(cmd.ErrOrStderr()))
}

// unproven is the exit code of what was seen of a model.
func unproven(report *rewrite.Report) int {
	if report.Unproven() > 0 {
		return cli.ExitPartial
	}
	return 0
}

// inspected opens a model and looks at it.
func inspected(ctx context.Context, path string, opts rewrite.Options) (*rewrite.Report, error) {
	model, err := onnx.Open(path)
	if err != nil {
		return nil, err
	}
	defer model.Close()
	return rewrite.Inspect(ctx, model, opts)
}

func inspection(w *cli.Writer, report *rewrite.Report) {
	cli.Sites(w, report)
	var shown []string
	for _, s := range report.Sites {
		if s.Attention == nil || len(s.Attention.Encoding.Frequencies) == 0 {
			continue
		}
		e := s.Attention.Encoding
		line := fmt.Sprintf("  %d frequencies from %.6g down to %.6g, gain %.6g",
			len(e.Frequencies), slices.Max(e.Frequencies), slices.Min(e.Frequencies), e.EffectiveGain())
		if !s.RotationOnly {
			line += fmt.Sprintf(", score scale %.6g", s.Attention.EffectiveScale())
		}
		line = strings.Join(append([]string{line}, s.Attention.DescribePositions()...), ", ")
		if line = cli.Wrap(line, "    "); !slices.Contains(shown, line) {
			shown = append(shown, line)
		}
	}
	w.List(shown)
	holdsOps := report.Again && !cli.Replaced(report)
	if holdsOps {
		fallback(w, report.Fallback)
	}
	if report.Record == nil {
		if !report.Again && report.Replaced() > 0 {
			w.Line("rope-rewrite methods lists what can be done.")
		}
		return
	}
	cli.Methods(w, report.Record.Edits)
	cli.ProvenWith(w, report.Record)
	beforeRewrite(w, report.Record)
	if holdsOps { // what other targets wrote cannot be undone
		w.Text("", "It can be rewritten again from these values. --restore removes its methods.")
	}
}

// fallback says whether a rewritten model runs without the op library.
func fallback(w *cli.Writer, d *rewrite.Fallback) {
	if d == nil {
		w.Line("It has no fallback, so it runs only with the op library.")
		return
	}
	w.Text("", "Without the op library it still runs, more slowly, on its fallback (%s, %s).", strings.Join(d.Ops, ", "), cli.Kilobytes(d.Bytes))
}

// beforeRewrite says what the attention layers of a model were before any rewrite.
func beforeRewrite(w *cli.Writer, r *provenance.Record) {
	if len(r.Edits) == 0 {
		w.Line("No method: the model computes what the original does.")
		return
	}
	w.Line("Before the rewrite (graph %.12s…):", r.Graph)
	var lines []string
	for _, s := range r.Sites {
		of := rewrite.SiteOf(s)
		lines = append(lines, cli.Wrap("  "+cli.LayersText(s.Layers)+": "+cli.DescribeSite(of), "    "))
	}
	w.List(lines)
}

// printRecipe writes the recipe of a rewritten model.
func printRecipe(cmd *cobra.Command, path string) error {
	model, err := onnx.Open(path)
	if err != nil {
		return err
	}
	defer model.Close()
	record, err := provenance.Read(model)
	if errors.Is(err, provenance.ErrNone) {
		return fmt.Errorf("%s: %w, so it has no recipe", path, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	wanted := recipe.Of(record)
	told := slices.ContainsFunc(wanted.Flags, func(f recipe.Flag) bool { return f.Name == "fallback" })
	if record.OpSpec > 0 && len(definition.Of(model)) == 0 && !told { // records of older versions do not say it
		wanted.Flags = append(wanted.Flags, recipe.Flag{Name: "fallback", Value: "none"})
	}
	text, err := wanted.Text()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s", text)
	return err
}
