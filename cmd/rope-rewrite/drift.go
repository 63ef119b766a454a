package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/drift"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// drifting is what the drift command is asked for.
type drifting struct {
	*cli.Common
	text    string
	length  cli.TokenCount
	shifts  cli.TokenList
	whole   bool
	against cli.TokenCount
	texts   int
	control bool
}

// longestDrift is the most tokens that are measured: every query meets every key in float32, one layer,
// head and shift after the other.
const longestDrift = 32768

func newDrift(c *cli.Common) *cobra.Command {
	d := &drifting{Common: c, length: 128, shifts: cli.TokenList{1, 16, 1024}, texts: 1}
	cmd := &cobra.Command{
		Use:   "drift MODEL.onnx [--text FILE] [--shifts N,N,...] [--whole-model]",
		Short: "Measure the rounding errors of attention when positions are shifted",
		Long: `Rotary attention depends only on distances, so if all positions are shifted,
only rounding can change the result. This command measures that change in one of
two ways.

By default the model runs once. The queries and keys of its layers are rotated
to shifted positions and multiplied in float32, in 16 bits, or split into two
16-bit parts each. The control does the same with random queries and keys of the
same size. Then the op runs in each type, precision and kind of cache.

With --whole-model the whole model runs at each shift, as in Wang et al.
(arXiv:2411.13476), so the changes add up from layer to layer. Each shift is
compared with the shift --against, over several --texts; --control adds a model
with random weights. This reproduces the paper's Figure 1:

  rope-rewrite drift MODEL.onnx --whole-model --text FILE --texts 50 --control \
      --against 16 --shifts 0,2,4,6,8,10,12,14,15,17,18,20,22,50,100,200,500,1000,2000`,
		Args: cli.OneModel,
		RunE: func(cmd *cobra.Command, args []string) error { return d.run(cmd, args[0]) },
	}
	d.Prints(cmd, drift.Result{}, drift.Whole{})
	f := cmd.Flags()
	f.StringVar(&d.text, "text", "", "measure on the text in `FILE`, read with the tokenizer.json beside the model (default: random tokens)")
	f.Var(&d.length, "length", "number of `TOKENS` to measure on")
	f.Var(&d.shifts, "shifts", "shift positions by these numbers of `TOKENS`, separated by commas")
	f.BoolVar(&d.whole, "whole-model", false, "run the whole model at each shift")
	f.Var(&d.against, "against", "compare other shifts with a shift of `TOKENS` (with --whole-model)")
	f.IntVar(&d.texts, "texts", 1, "average over `NUMBER` pieces of --text (with --whole-model)")
	f.BoolVar(&d.control, "control", false, "also measure a model with random weights (with --whole-model)")
	return cmd
}

func (d *drifting) run(cmd *cobra.Command, path string) error {
	switch {
	case d.length < 2:
		return cli.Usage("--length %d: at least 2 tokens are needed", d.length)
	case d.length > longestDrift:
		return cli.Usage("--length %d: at most %d tokens are measured, because the time grows with their square", d.length, longestDrift)
	case len(d.shifts) == 0 || slices.Min(d.shifts) < 0 || d.against < 0:
		return cli.Usage("--shifts: expected numbers of tokens, none below 0")
	case max(slices.Max(d.shifts), d.against) > 1<<24:
		return cli.Usage("--shifts: expected numbers up to %d", 1<<24)
	case d.texts < 1 || d.texts > 1 && d.text == "":
		return cli.Usage("--texts %d: expected a number above 0, and a --text to take the pieces from", d.texts)
	case !d.whole && (d.against != 0 || d.texts != 1 || d.control):
		return cli.Usage("--against, --texts and --control belong to --whole-model")
	}
	texts, err := d.tokens(path)
	if err != nil {
		return err
	}
	options, err := d.Options()
	if err != nil {
		return err
	}
	if d.whole {
		return d.wholeModel(cmd, path, texts, options)
	}
	var tokens []int64
	if texts != nil {
		tokens = texts[0]
	}
	progress := cli.NewProgress(cmd.ErrOrStderr())
	defer progress.Done()
	options.Progress = progress.Say
	opts := drift.Options{Rewrite: options, Tokens: tokens, Length: int(d.length)}
	for _, s := range d.shifts {
		opts.Shifts = append(opts.Shifts, int64(s))
	}
	r, err := drift.Run(cmd.Context(), path, opts)
	progress.Done()
	if err != nil {
		return err
	}
	return d.Show(cmd, r, func(w *cli.Writer) { showDrift(w, r) })
}

// wholeModel runs the whole model at each shift.
func (d *drifting) wholeModel(cmd *cobra.Command, path string, texts [][]int64, options rewrite.Options) error {
	progress := cli.NewProgress(cmd.ErrOrStderr())
	defer progress.Done()
	options.Progress = progress.Say
	opts := drift.WholeOptions{Rewrite: options, Texts: texts, Length: int(d.length), Against: int64(d.against), Control: d.control}
	for _, s := range d.shifts {
		opts.Shifts = append(opts.Shifts, int64(s))
	}
	var err error
	if opts.Spread, err = drift.Spread(path); err != nil {
		return err
	}
	w, err := drift.RunWhole(cmd.Context(), path, opts)
	progress.Done()
	if err != nil {
		return err
	}
	return d.Show(cmd, w, func(out *cli.Writer) { showWhole(out, w) })
}

// tokens are those of the pieces of the text; nil without one.
func (d *drifting) tokens(model string) ([][]int64, error) {
	if d.text == "" {
		return nil, nil
	}
	return cli.TextPieces(d.text, model, int(d.length), d.texts)
}

func showDrift(w *cli.Writer, r *drift.Result) {
	w.Line("%d layers on %d tokens.", len(r.Layers), r.Tokens)
	for _, l := range r.Left {
		w.Line("%s", cli.Wrap(fmt.Sprintf("Layer %d is not measured: %s", l.Layer, l.Reason), "  "))
	}
	w.Line("")
	w.Line("One run's queries and keys, rotated to shifted positions: the change, summed")
	w.Line("over layers and heads (--whole-model shifts the positions of the whole model):")
	w.Line("%-10s %7s %11s %11s %11s %11s", "product", "shift", "weights", "control", "first key", "control")
	for _, row := range r.Rows {
		w.Line("%-10s %7d %11.2e %11.2e %11.2e %11.2e", row.Arithmetic, row.Shift, row.Weights, row.Control.Weights, row.FirstKey, row.Control.FirstKey)
	}
	w.Line("")
	w.Line("The op's mean change of log-sum-exp:")
	w.Line("%-10s %-10s %-10s %7s %11s %11s", "type", "precision", "cache", "shift", "prompt", "next token")
	for _, o := range r.Op {
		w.Line("%-10s %-10s %-10s %7d %11.2e %11.2e", o.Type, o.Precision, o.Cache, o.Shift, o.Prompt, o.Next)
	}
	if r.Advice != "" {
		w.Line("")
		w.Line("%s", cli.Wrap(r.Advice, ""))
	}
}
