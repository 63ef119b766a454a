package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/recipe"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/validate"
)

func newValidate(c *common) *cobra.Command {
	var opts validate.Options
	var length tokenCount
	var own ownInputs
	cmd := &cobra.Command{
		Use:   "validate ORIGINAL.onnx PATCHED.onnx",
		Short: "Run two models on the same inputs and compare their logits",
		Long: `Feeds both models the same random tokens, one row padded (on the left, or on the
right where the model counts its rows as GroupQueryAttention does): in one call,
in two chunks, and token by token with the cache. The logits may differ by twice
what rounding alone does to the original; a 16-bit model's error against float32
may be at most twice the original's. --text, --prompts or --npz feed your own
tokens.

A model that rope-rewrite wrote is also compared, node by node and weight by
weight, with the original rewritten again as the model's record says, and each
of its attention layers with a float64 reference. Methods make logits differ: a
model with methods is compared with the original to which they were given.

Exit code 0 when the patched model is the same, or what its record says; 1 when
it is not; 6 when that could not be seen.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError("two models are compared, ORIGINAL.onnx and PATCHED.onnx; got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("length") {
				opts.Length = int64(length)
			}
			switch {
			case length < validate.MinLength:
				return usageError("--length %d: at least %d tokens are needed to compare prefill and decode", length, validate.MinLength)
			case cmd.Flags().Changed("tolerance") && !(opts.Tolerance > 0):
				return usageError("--tolerance %g: a number above 0 was expected", opts.Tolerance)
			}
			var err error
			given := 0
			if cmd.Flags().Changed("length") {
				given = int(length)
			}
			if opts.Rows, err = own.rows(args[0], given); err != nil {
				return err
			}
			if opts.Rows != nil {
				opts.Length = 0
			}
			worker, err := self()
			if err != nil {
				return err
			}
			eng, err := engine.NewWorker(engine.Config{Runtime: c.runtime, Library: c.library}, worker)
			if err != nil {
				return err
			}
			defer eng.Close()
			progress := newProgress(cmd.ErrOrStderr())
			defer progress.done()
			opts.Progress = progress.say
			opts.Again = c.again
			result, err := validate.Run(cmd.Context(), eng, args[0], args[1], opts)
			progress.done()
			if err != nil {
				return err
			}
			if c.json {
				err = printJSON(cmd.OutOrStdout(), result)
			} else {
				w := &writer{out: cmd.OutOrStdout()}
				verdict(w, result)
				err = w.err
			}
			if err == nil && own.html != "" {
				err = writeValidation(own.html, result)
			}
			switch {
			case err == nil && result.Verdict == validate.NotShown:
				err = &exitError{exitNotShown, errReported}
			case err == nil && !result.Verdict.Holds():
				err = &exitError{exitFailed, errReported}
			}
			return err
		},
	}
	length = validate.DefaultLength
	cmd.Flags().Var(&length, "length", "`TOKENS` of the sequences")
	own.flags(cmd)
	cmd.Flags().Float64Var(&opts.Tolerance, "tolerance", 0, "largest allowed difference, as a `SHARE` of the logits' range, in place of what rounding does to the original")
	return cmd
}

func verdict(w *writer, r *validate.Result) {
	if r.Short {
		w.line("%-31s %10s %10s %11s %11s", "", "difference", "share of", "original's", "patched's")
		w.line("%-31s %10s %10s %11s %11s", "", "", "range", "error", "error")
	} else {
		w.line("%-34s %12s %14s", "", "difference", "share of range")
	}
	for _, c := range r.Cases {
		if r.Short {
			w.line("%-31s %10.2e %10.1e %11.2e %11.2e", c.Name, c.Difference, c.Share(), c.OriginalError, c.PatchedError)
		} else {
			w.line("%-34s %12.2e %14.1e", c.Name, c.Difference, c.Share())
		}
	}
	for _, note := range r.Notes {
		w.line("%s", wrap(note, ""))
	}
	agreement(w, r)
	graph(w, r)
	if r.Claim != nil && r.Claim.Changes {
		claimed(w, r)
		return
	}
	bound := fmt.Sprintf("twice what rounding does to the original (%.1e of the logits' range)", r.Rounding)
	if r.Tolerance > 0 {
		bound = fmt.Sprintf("%.0e of the logits' range", r.Tolerance)
	}
	if r.Short && r.Tolerance == 0 {
		bound += ", or the patched model's error against float32 at most twice the original's"
	}
	switch {
	case r.Verdict == validate.Same:
		w.line("%s", wrap(fmt.Sprintf("SAME: every difference is at most %s.", bound), ""))
		return
	case r.Verdict == validate.NotShown:
		w.line("%s", wrap("NOT SHOWN: what rounding does to the original could not be measured, so there is nothing to measure the difference by; give --tolerance.", ""))
	case r.Same:
		w.line("%s", wrap("DIFFERENT: the file was changed after it was written. These inputs do not show it.", ""))
	default:
		w.line("%s", wrap(fmt.Sprintf("DIFFERENT: a difference is above what is allowed: at most %s.", bound), ""))
	}
	if r.Claim != nil {
		offLayers(w, r.Claim)
		switch {
		case len(r.Claim.Layers) == 0 || !r.Claim.Holds:
		case r.Verdict == validate.NotShown:
			w.line("%s", wrap("Every attention computes what its record says.", ""))
		default:
			w.line("%s", wrap("Every attention computes what its record says. The difference comes from elsewhere in the model.", ""))
		}
	}
}

// graph names the first place in which the file is not what a rewrite of the original gives.
func graph(w *writer, r *validate.Result) {
	switch {
	case r.Rebuilt == nil:
	case r.Rebuilt.First == nil:
		w.line("%s", wrap("Node by node and weight by weight, it is what its record says of the original.", ""))
	case r.Rebuilt.Altered:
		w.line("%s", wrap("It is not what its record says of the original: "+r.Rebuilt.First.What+".", ""))
	}
}

// again gives the options that make what a record says, as the flags of its recipe do.
func (c *common) again(record *provenance.Record) (rewrite.Options, error) {
	r := &rewriteCommand{common: c}
	cmd := &cobra.Command{}
	r.flags(cmd)
	for _, f := range recipe.Of(record).Flags {
		if err := cmd.Flags().Set(f.Name, f.Value); err != nil {
			return rewrite.Options{}, err
		}
	}
	options, _, err := r.options(cmd)
	return options, err
}
