package main

import (
	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// common are the flags of every command.
type common struct {
	runtime string
	library string
	json    bool
}

func (c *common) flags(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVar(&c.runtime, "onnxruntime", "", "`PATH` of the ONNX Runtime library (environment: "+customop.RuntimeVariable+")")
	f.StringVar(&c.library, "ops-library", "", "`PATH` of the op library librope_ops (environment: "+customop.LibraryVariable+")")
	f.BoolVar(&c.json, "json", false, "print one JSON object on stdout instead of text")
}

// options are the part of the rewriter's options that every command shares:
// models are evaluated in a child process, which a hostile graph may end.
func (c *common) options() (rewrite.Options, error) {
	worker, err := self()
	return rewrite.Options{Runtime: c.runtime, Library: c.library, Worker: []string{worker}}, err
}

func newRoot() *cobra.Command {
	c := &common{}
	r := &rewriteCommand{common: c}
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
			return oneModel(cmd, args)
		},
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.helpAll {
				return allHelp(cmd)
			}
			return r.run(cmd, args[0])
		},
	}
	root.SetFlagErrorFunc(flagError)
	root.SetGlobalNormalizationFunc(sameName)
	root.SetUsageFunc(usage)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { help(cmd) })
	root.DisableSuggestions = true // misplaced knows more
	root.CompletionOptions.HiddenDefaultCmd = true
	c.flags(root)
	r.flags(root)
	root.AddCommand(newInspect(c), newValidate(c), newAudit(c), newDiff(c), newBench(c), newBenchProbe(c), newEval(c), newDrift(c), newPlot(c), newMethods(c), newOps(c), newDoctor(c), newVersion(c), newManuals())
	return root
}

// errNoModel is what the command says when it is not told what to work on.
var errNoModel = usageError("which model? Give the path of an .onnx file, or of a folder with some")

// oneModel accepts exactly one model.
func oneModel(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errNoModel
	}
	return misplaced(cmd, args)
}

// noArgs accepts nothing.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError("%s takes nothing more, got %q", cmd.CommandPath(), args)
	}
	return nil
}
