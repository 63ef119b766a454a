package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/drift"
)

// drifting is what the drift command is asked for.
type drifting struct {
	*cli.Common
	text   string
	length cli.TokenCount
	shifts cli.TokenList
}

func newDrift(c *cli.Common) *cobra.Command {
	d := &drifting{Common: c, length: 128, shifts: cli.TokenList{1, 16, 1024}}
	cmd := &cobra.Command{
		Use:   "drift MODEL.onnx [--text FILE] [--shifts N,N,...]",
		Short: "Measure the rounding errors of attention when positions are shifted",
		Long: `Rotary attention depends only on distances, so a shift of all positions changes
nothing except by rounding. This runs the model once and takes the queries and
keys of its attention layers. It shows how much a shift changes the attention
weights when rotated queries and keys are multiplied in float32, in 16 bits, or
as two 16-bit parts each; the control is the same for random queries and keys of
the same size. Then it runs the op in each type, precision and kind of cache.`,
		Args: cli.OneModel,
		RunE: func(cmd *cobra.Command, args []string) error { return d.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&d.text, "text", "", "`FILE` of the text to measure on, with the tokenizer.json beside the model; by default, random tokens")
	f.Var(&d.length, "length", "`TOKENS` to measure on")
	f.Var(&d.shifts, "shifts", "`TOKENS` by which positions are shifted, with commas")
	return cmd
}

func (d *drifting) run(cmd *cobra.Command, path string) error {
	switch {
	case d.length < 2:
		return cli.Usage("--length %d: at least 2 tokens are needed", d.length)
	case len(d.shifts) == 0 || slices.Min(d.shifts) < 0:
		return cli.Usage("--shifts: numbers of tokens were expected, none below 0")
	}
	tokens, err := d.tokens(path)
	if err != nil {
		return err
	}
	options, err := d.Options()
	if err != nil {
		return err
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

// tokens are those of the text; nil without one.
func (d *drifting) tokens(model string) ([]int64, error) {
	if d.text == "" {
		return nil, nil
	}
	return cli.TextTokens(d.text, model, int(d.length))
}

func showDrift(w *cli.Writer, r *drift.Result) {
	w.Line("%d layers on %d tokens.", len(r.Layers), r.Tokens)
	for _, l := range r.Left {
		w.Line("%s", cli.Wrap(fmt.Sprintf("Layer %d is left out: %s", l.Layer, l.Reason), "  "))
	}
	w.Line("")
	w.Line("Change by a shift of all positions, summed over layers and heads:")
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
