package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// common are the flags of every command that evaluates.
type common struct {
	runtime string
	library string
	json    bool
}

func (c *common) flags(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVar(&c.runtime, "onnxruntime", "", "ONNX Runtime shared library `PATH` (environment: ONNXRUNTIME_SHARED_LIBRARY_PATH)")
	f.StringVar(&c.library, "ops-library", "", "op library `PATH`, librope_ops (environment: ROPE_OPS_LIBRARY)")
	f.BoolVar(&c.json, "json", false, "print one JSON object on stdout instead of text")
}

func newRoot() *cobra.Command {
	c := &common{}
	r := &rewriteCommand{common: c}
	root := &cobra.Command{
		Use:   "rope-rewrite MODEL.onnx [-o OUT.onnx] [--scaling SPEC] [--positions SPEC]",
		Short: "Give an exported ONNX model longer and better context",
		Long: `Finds the rotary attention of a model, proves for each site that the fused op
RotaryAttention computes the same, and replaces it. Without a method the
meaning is kept; a SPEC changes it: NAME or NAME:KEY=VALUE,KEY=VALUE.

  --scaling yarn:factor=4,original_max_position_embeddings=8192
  --scaling linear:factor=2
  --scaling theta:rope_theta=500000
  --positions string:shift=2730,window=128

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 some attention sites could not
be rewritten (nothing written unless --allow-partial), 4 no rotary attention.`,
		Args:          oneModel,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, args []string) error { return r.run(cmd, args[0]) },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &exitError{exitUsage, err} })
	root.CompletionOptions.HiddenDefaultCmd = true
	c.flags(root)
	r.flags(root)
	root.AddCommand(newInspect(c), newValidate(c), newOps(c))
	return root
}

// oneModel accepts exactly one model.
func oneModel(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usageError("which model? Give the path of an .onnx file")
	case len(args) > 1:
		return usageError("one model at a time, got %d: %q", len(args), args)
	}
	return nil
}

// open opens a model and says what a missing one may be.
func open(path string) (*onnx.Model, error) {
	m, err := onnx.Open(path)
	if err != nil {
		return nil, &exitError{exitFailed, err}
	}
	return m, nil
}

// noAttention turns the error of a model without rotary attention into its code.
func noAttention(err error) bool { return errors.Is(err, rewrite.ErrNoAttention) }
