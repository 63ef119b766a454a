package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/drift"
	"github.com/rope-rewrite/rope-rewrite/lm/tokenizer"
)

// drifting is what the drift command is asked for.
type drifting struct {
	*common
	text   string
	length tokenCount
	shifts tokenList
}

func newDrift(c *common) *cobra.Command {
	d := &drifting{common: c, length: 128, shifts: tokenList{1, 16, 1024}}
	cmd := &cobra.Command{
		Use:   "drift MODEL.onnx [--text FILE] [--shifts N,N,...]",
		Short: "Measure what rounding does to attention when positions are shifted",
		Long: `Rotary attention depends on distances alone, so shifting all positions changes
nothing, but for rounding. This runs the model once, takes the queries and keys
that its attentions have, and shows how far their weights change by a shift when
rotated queries and keys are multiplied in float32, in 16 bits, or as two 16-bit
parts each; beside it the same for random ones of the same size, the control.
Then it runs the op in each type, precision and kind of cache.`,
		Args: oneModel,
		RunE: func(cmd *cobra.Command, args []string) error { return d.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&d.text, "text", "", "`FILE` of the text to measure on, by the tokenizer.json beside the model; without it random tokens")
	f.Var(&d.length, "length", "`TOKENS` to measure on")
	f.Var(&d.shifts, "shifts", "`TOKENS` by which positions are shifted, with commas")
	return cmd
}

func (d *drifting) run(cmd *cobra.Command, path string) error {
	switch {
	case d.length < 2:
		return usageError("--length %d: at least 2 tokens are needed", d.length)
	case len(d.shifts) == 0 || slices.Min(d.shifts) < 0:
		return usageError("--shifts: numbers of tokens were expected, none below 0")
	}
	tokens, err := d.tokens(path)
	if err != nil {
		return err
	}
	options, err := d.options()
	if err != nil {
		return err
	}
	progress := newProgress(cmd.ErrOrStderr())
	defer progress.done()
	options.Progress = progress.say
	opts := drift.Options{Rewrite: options, Tokens: tokens, Length: int(d.length)}
	for _, s := range d.shifts {
		opts.Shifts = append(opts.Shifts, int64(s))
	}
	r, err := drift.Run(cmd.Context(), path, opts)
	progress.done()
	if err != nil {
		return err
	}
	return d.show(cmd, r, func(w *writer) { showDrift(w, r) })
}

// tokens are those of the text; nil where there is none.
func (d *drifting) tokens(model string) ([]int64, error) {
	if d.text == "" {
		return nil, nil
	}
	return textTokens(d.text, model, int(d.length))
}

// textTokens are the first tokens of a text, by the tokenizer of a model's folder.
func textTokens(path, model string, length int) ([]int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--text: %w", err)
	}
	t, err := tokenizer.Open(filepath.Join(filepath.Dir(model), "tokenizer.json"))
	if err != nil {
		return nil, fmt.Errorf("--text needs the model's tokenizer beside it: %w", err)
	}
	ids, err := t.EncodeWithSpecial(string(text))
	if err != nil {
		return nil, fmt.Errorf("--text: %w", err)
	}
	if len(ids) < length {
		return nil, fmt.Errorf("--text: %s has %d tokens, and %d are measured; give a longer text or --length %d", path, len(ids), length, len(ids))
	}
	return ids[:length], nil
}

func showDrift(w *writer, r *drift.Result) {
	w.line("%d layers on %d tokens.", len(r.Layers), r.Tokens)
	for _, l := range r.Left {
		w.line("%s", wrap(fmt.Sprintf("Layer %d is left out: %s", l.Layer, l.Reason), "  "))
	}
	w.line("")
	w.line("Change by a shift of all positions, summed over layers and heads:")
	w.line("%-10s %7s %11s %11s %11s %11s", "product", "shift", "weights", "control", "first key", "control")
	for _, row := range r.Rows {
		w.line("%-10s %7d %11.2e %11.2e %11.2e %11.2e", row.Arithmetic, row.Shift, row.Weights, row.Control.Weights, row.FirstKey, row.Control.FirstKey)
	}
	w.line("")
	w.line("The op's mean change of log-sum-exp:")
	w.line("%-10s %-10s %-10s %7s %11s %11s", "type", "precision", "cache", "shift", "prompt", "next token")
	for _, o := range r.Op {
		w.line("%-10s %-10s %-10s %7d %11.2e %11.2e", o.Type, o.Precision, o.Cache, o.Shift, o.Prompt, o.Next)
	}
	if r.Advice != "" {
		w.line("")
		w.line("%s", wrap(r.Advice, ""))
	}
}
