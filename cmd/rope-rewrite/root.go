package main

import (
	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/customop"
)

func newRoot() *cobra.Command {
	c := &cli.Common{}
	r := &rewriteCommand{Common: c}
	root := &cobra.Command{
		Use:     "rope-rewrite MODEL.onnx [-o OUT.onnx] [--scaling SPEC] [--mask SPEC] ...",
		Short:   "Give an exported ONNX model longer and better context",
		Version: customop.Version,
		Long: `Finds the rotary attention of a model, proves for each site that the fused op
RotaryAttention computes the same, and replaces it. Without a method the
meaning is kept; a SPEC changes it: NAME or NAME:KEY=VALUE,KEY=VALUE. Numbers of
tokens may be written as 8k (8192) or 128K (131072). A folder in the place of
MODEL.onnx becomes a folder: all its models are rewritten, and config.json and
genai_config.json say what they now are.

  --scaling yarn:factor=4,original_max_position_embeddings=8k
  --scaling theta:rope_theta=500000
  --positions string:shift=2730,window=128
  --mask anchor --documents input
  --kv fixed:capacity=8k

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 some attention sites could not
be rewritten (nothing written unless --allow-partial), 4 no rotary attention,
5 audit or diff saw a difference, 6 validate could not see whether a model has
its methods.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if r.helpAll {
				return nil
			}
			return cli.OneModel(cmd, args)
		},
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.helpAll {
				return cli.AllHelp(cmd)
			}
			return r.run(cmd, args[0])
		},
	}
	cli.Dress(root)
	c.Flags(root)
	r.flags(root)
	root.AddCommand(newInspect(c), newValidate(c), newAudit(c), newDiff(c), newBench(c), newBenchProbe(c), newEval(c), newDrift(c), newPlot(c), newMethods(c), newOps(c), newDoctor(c), newVersion(c), newManuals())
	return root
}
