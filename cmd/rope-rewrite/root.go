package main

import (
	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

func newRoot() *cobra.Command { return newRootOf(&cli.Common{}) }

// newRootOf is the command whose common flags are c's.
func newRootOf(c *cli.Common) *cobra.Command {
	r := &rewriteCommand{Common: c}
	root := &cobra.Command{
		Use:     "rope-rewrite MODEL.onnx [-o OUT.onnx] [--scaling SPEC] [--mask SPEC] ...",
		Short:   "Extend the context of an exported ONNX language model",
		Version: customop.Version,
		Long: `Replaces each rotary attention layer of a model by the fused op RotaryAttention,
after verifying that both compute the same. Without a method, the model's output
is unchanged. A method is given as a SPEC: NAME or NAME:KEY=VALUE,KEY=VALUE.
Numbers of tokens may be written as 8k (8192) or 128K (131072).

MODEL.onnx may also be a folder. Then all its models are written to a new
folder; config.json and genai_config.json there say of the new models what they
have keys for, and a warning names the rest.

  --mask sliding-window:window=4k
  --mask anchor --documents input
  --kv fixed:capacity=8k

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 some attention layers could not
be rewritten (nothing written unless --allow-partial), 4 no rotary attention,
5 audit or diff found a difference, 6 validate could not tell whether a model
is what its record says, 7 --require-any-length asks for more than is known,
8 validate found its outputs right and its file not confirmed.`,
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
	c.Prints(root, rewrite.Report{}, folderReport{})
	cli.Dress(root)
	c.Flags(root)
	r.flags(root)
	cli.Complete(root)
	root.AddCommand(newInspect(c), newValidate(c), newAudit(c), newDiff(c), newBench(c), newBenchProbe(c), newEval(c), newSuggest(c), newDrift(c), newScales(c), newPlot(c), newMethods(c), newOps(c), newDoctor(c), newDemo(c), newVersion(c), newManuals(), newReference(), newSchemas(c))
	return root
}
