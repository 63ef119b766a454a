package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/validate"
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
in two chunks, and token by token with the cache. A model in float16 or bfloat16
is also computed in float32: the patched model may be off from that by twice
what the original is off. --text, --prompts or --npz feed your own tokens.

A model that was given another meaning must differ: each of its layers is then
compared with a float64 reference of what its record says, on what the layer
read. Exit code 0 when the patched model is the same, or what it claims to be; 1
when not.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError("two models are compared, ORIGINAL.onnx and PATCHED.onnx; got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Length = int64(length)
			switch {
			case opts.Length < validate.MinLength:
				return usageError("--length %d: at least %d tokens are needed to compare prefill and decode", opts.Length, validate.MinLength)
			case !(opts.Tolerance > 0):
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
			if err == nil && !result.Verdict.Holds() {
				err = &exitError{exitFailed, errReported}
			}
			return err
		},
	}
	length = validate.DefaultLength
	cmd.Flags().Var(&length, "length", "`TOKENS` of the sequences")
	own.flags(cmd)
	cmd.Flags().Float64Var(&opts.Tolerance, "tolerance", validate.DefaultTolerance, "largest allowed difference, as a `SHARE` of the logits' range")
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
	if r.Claim != nil && len(r.Claim.Methods) > 0 {
		claimed(w, r)
		return
	}
	within := ""
	if r.Short {
		within = ", or the patched model's error against float32 at most twice the original's"
	}
	switch {
	case r.Same:
		w.line("%s", wrap(fmt.Sprintf("SAME: every difference is at most %.0e of the logits' range%s.", r.Tolerance, within), ""))
		return
	case r.Short:
		w.line("%s", wrap(fmt.Sprintf("DIFFERENT: a difference is above %.0e of the logits' range, and the patched model's error against float32 above twice the original's.", r.Tolerance), ""))
	default:
		w.line("DIFFERENT: a difference is above %.0e of the logits' range.", r.Tolerance)
	}
	if r.Claim != nil {
		offLayers(w, r.Claim)
		if r.Claim.Holds {
			w.line("%s", wrap("Every attention computes what it says: the difference comes from something else in the model.", ""))
		}
	}
}
