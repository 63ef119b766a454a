package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/internal/modelfiles"
	"github.com/rope-rewrite/rope-rewrite/validate"
)

// validateCommand is rope-rewrite validate.
type validateCommand struct {
	*cli.Common
	length             cli.TokenCount
	tolerance          float64
	text, prompts, npz string
	html               string
	outputsOnly        bool
}

func newValidate(c *cli.Common) *cobra.Command {
	v := &validateCommand{Common: c, length: validate.DefaultLength}
	cmd := &cobra.Command{
		Use:   "validate ORIGINAL.onnx PATCHED.onnx",
		Short: "Check that a patched model computes what it should",
		Long: `Feeds both models the same tokens: in one call, in two chunks, and token by
token with the cache. One row is padded: on the left, or on the right if the
cache is length-tracked. The tokens are random unless --text, --prompts or --npz
gives others. The logits may differ by at most twice what rounding alone changes
in the original. The error of a 16-bit model, measured against float32, may be
at most twice the original's.

A model that rope-rewrite wrote contains a record of the rewrite. validate
rewrites the original again as the record says, and compares both files: every
node, weight, function, input and output. It compares each attention layer with
a float64 reference. If the model has methods, which change the logits, it is
compared with the original after the same methods. Random tokens do not reach
everything, so a file that is not the expected one is never called the same,
whatever its logits are. --outputs-only asks for the logits alone.

Given two folders, it compares the models that have the same name in both.

Exit code 0 when the patched model equals the original or is what its record
says, 1 when it is not, 6 when that could not be determined, 8 when its logits
are right and its file is not the expected one.`,
		Args: cli.TwoModels("ORIGINAL.onnx", "PATCHED.onnx"),
		RunE: v.run,
	}
	v.Prints(cmd, validate.Report{}, cli.OfFolder[*validate.Report]{})
	f := cmd.Flags()
	f.Var(&v.length, "length", "length of the sequences, in `TOKENS`")
	f.StringVar(&v.text, "text", "", "compare on the text in `FILE`, read with the tokenizer.json beside the model: one row has its first --length tokens, a second row half as many")
	f.StringVar(&v.prompts, "prompts", "", "compare on the prompts in `FILE`, one in each line; rows are padded")
	f.StringVar(&v.npz, "npz", "", "compare on the NumPy arrays in `FILE`: input_ids, and attention_mask if rows are padded")
	f.StringVar(&v.html, "html", "", "also write the comparison to `FILE`, as an HTML page")
	f.BoolVar(&v.outputsOnly, "outputs-only", false, "compare only the logits on these inputs, not the files")
	f.Float64Var(&v.tolerance, "tolerance", 0, "largest allowed difference, as a `SHARE` of the logits' range, instead of twice what rounding does to the original")
	return cmd
}

func (v *validateCommand) run(cmd *cobra.Command, args []string) error {
	given := cmd.Flags().Changed
	switch {
	case v.length < validate.MinLength:
		return cli.Usage("--length %d: at least %d tokens are needed to compare prefill and decode", v.length, validate.MinLength)
	case given("tolerance") && !(v.tolerance > 0):
		return cli.Usage("--tolerance %g: expected a number above 0", v.tolerance)
	}
	opts := validate.Options{Tolerance: v.tolerance, OutputsOnly: v.outputsOnly}
	if given("length") {
		opts.Length = int64(v.length)
	}
	var err error
	if opts.Rewrite, err = v.Options(); err != nil {
		return err
	}
	if v.html != "" && cli.IsFolder(args[0]) {
		return cli.Usage("--html is for two models, and these are folders")
	}
	return cli.Work[*validate.Report]{
		Do: func(ctx context.Context, p modelfiles.Pair, say func(string)) (*validate.Report, error) {
			opts.Rewrite.Progress = say
			report, err := v.compare(ctx, p.A, p.B, opts)
			if err == nil && v.html != "" {
				err = writeValidation(v.html, report)
			}
			return report, err
		},
		Name: func(r *validate.Report) string { return r.Patched },
		Text: verdict, Done: "compared", Failed: "are not what they should be, or could not be compared",
		Code: func(r *validate.Report) int { return exitCode(r.Verdict) },
		Unable: func(err error) int {
			if unrun := (*validate.UnrunError)(nil); errors.As(err, &unrun) {
				return cli.ExitNotShown
			}
			return cli.ExitFailed
		},
	}.Run(cmd.Context(), v.Common, cmd, args, cli.NewStages(cmd.ErrOrStderr()))
}

// exitCode is that of a verdict.
func exitCode(v validate.Verdict) int {
	switch {
	case v.Holds():
		return 0
	case v == validate.NotConfirmed:
		return cli.ExitNotConfirmed
	case v == validate.NotShown:
		return cli.ExitNotShown
	}
	return cli.ExitFailed
}

// compare compares two models on the tokens that were asked for.
func (v *validateCommand) compare(ctx context.Context, original, patched string, opts validate.Options) (_ *validate.Report, err error) {
	if opts.Rows, err = v.rows(original, int(opts.Length)); err != nil {
		return nil, err
	}
	if opts.Rows != nil {
		opts.Length = 0
	}
	return validate.Run(ctx, original, patched, opts)
}

// rows are the tokens of the user's own inputs, nil without any. They are cut to a length,
// unless it is 0.
func (v *validateCommand) rows(model string, length int) ([][]int64, error) {
	given := slices.DeleteFunc([]string{v.text, v.prompts, v.npz}, func(s string) bool { return s == "" })
	switch {
	case len(given) > 1:
		return nil, cli.Usage("--text, --prompts and --npz are three kinds of input; give one")
	case v.text != "":
		return validate.ReadText(v.text, model, length)
	case v.prompts != "":
		return validate.ReadPrompts(v.prompts, model, length)
	case v.npz == "":
		return nil, nil
	}
	rows, err := validate.ReadArrays(v.npz, length)
	if archive := (*validate.ArchiveError)(nil); errors.As(err, &archive) {
		err = fmt.Errorf("--npz %w", err)
	}
	return rows, err
}

func verdict(w *cli.Writer, r *validate.Report) {
	if r.Short {
		w.Line("%-31s %10s %10s %11s %11s", "", "difference", "share of", "original's", "patched's")
		w.Line("%-31s %10s %10s %11s %11s", "", "", "range", "error", "error")
	} else {
		w.Line("%-34s %12s %14s", "", "difference", "share of range")
	}
	for _, c := range r.Cases {
		if r.Short {
			w.Line("%-31s %10.2e %10.1e %11.2e %11.2e", c.Name, c.Difference, c.Share(), c.OriginalError, c.PatchedError)
		} else {
			w.Line("%-34s %12.2e %14.1e", c.Name, c.Difference, c.Share())
		}
	}
	for _, note := range r.Notes {
		w.Text("", "%s", note)
	}
	agreement(w, r)
	graph(w, r)
	if r.Claim != nil && r.Claim.Changes {
		methods(w, r.Claim.Methods)
	}
	if r.Claim != nil {
		offLayers(w, r.Claim)
	}
	w.Text("", "%s", conclusion(r))
}

// conclusion is what all the rest comes to.
func conclusion(r *validate.Report) string {
	claim, rebuilt := r.Claim, r.Rebuilt
	claims := claim != nil && claim.Changes
	bound := fmt.Sprintf("twice what rounding does to the original (%.1e of the logits' range)", r.Rounding)
	if r.Tolerance > 0 {
		bound = fmt.Sprintf("%.0e of the logits' range", r.Tolerance)
	}
	if r.Short && r.Tolerance == 0 {
		bound += ", or the patched model's error against float32 at most twice the original's"
	}
	layers := ""
	if claim != nil && !claims && len(claim.Layers) > 0 && claim.Holds {
		layers = " Every attention layer computes what its record says."
	}
	switch v := r.Verdict; {
	case v == validate.Same:
		return "SAME: every difference is at most " + bound + "."
	case v == validate.SameOutputs:
		return "SAME OUTPUTS: on these inputs every difference is at most " + bound + ". The files were not compared."
	case v == validate.AsClaimed:
		return asClaimed(r)
	case v == validate.NotConfirmed:
		return "NOT CONFIRMED: the logits are right on these inputs, but the file is not the expected one, so others may show a difference." + layers
	case v == validate.NotShown && r.Fallback != nil && !r.Fallback.Agrees:
		return "NOT SHOWN: its fallback could not be run." + layers
	case v == validate.NotShown && !claims:
		return "NOT SHOWN: the effect of rounding on the original could not be measured, so the difference has no bound; give --tolerance." + layers
	case v == validate.NotShown && rebuilt == nil:
		return "NOT SHOWN: the nodes outside the attention layers could not be compared."
	case v == validate.NotShown && rebuilt.First == nil:
		return "NOT SHOWN: not every layer with a method could be compared with a reference of it."
	case v == validate.NotShown:
		return "NOT SHOWN: on these inputs the logits equal the original's, because the inputs are too short for the methods; feed longer ones with --length."
	case v == validate.Different && r.Same:
		return "DIFFERENT: the file was changed after it was written, though the logits agree on these inputs." + layers
	case v == validate.Different:
		return "DIFFERENT: a difference is larger than allowed. Allowed is at most " + bound + "." + layers
	case !claim.Holds:
		return "NOT AS CLAIMED: an attention layer does not compute what its record says."
	case rebuilt != nil && rebuilt.First != nil && rebuilt.First.Altered || r.Fallback != nil && r.Fallback.Differs:
		return "NOT AS CLAIMED: the file was changed after it was written."
	}
	return "NOT AS CLAIMED: its logits differ from those of the original with these methods."
}

// graph says whether the file is what its record says, or in what it first differs.
func graph(w *cli.Writer, r *validate.Report) {
	subject := "its record says"
	if r.Claim == nil {
		subject = "the original is, and has no record of a rewrite of it"
	}
	switch b := r.Rebuilt; {
	case b == nil:
	case b.First != nil:
		w.Text("", "%s", "The file is not what "+subject+": "+b.First.String()+".")
	case r.Claim == nil:
		w.Line("Node by node and weight by weight, the file is the original.")
	case b.Optimized:
		w.Text("", "Node by node and weight by weight, the file is what its record says, after ONNX Runtime's basic optimisations of both.")
	default:
		w.Text("", "Node by node and weight by weight, the file is what its record says.")
	}
	if b := r.Rebuilt; b != nil && len(b.Dropped) > 0 {
		w.Text("", "Its fallback (%s) was left out by what saved the file, so it runs only with the op library.", strings.Join(b.Dropped, ", "))
	}
	f := r.Fallback
	if f == nil {
		return
	}
	names := strings.Join(f.Unknown, ", ")
	switch {
	case f.Agrees:
		w.Text("", "Unknown fallback, agrees numerically (%s): no known version of rope-rewrite writes it, but on a few tokens it gives what the op gives.", names)
	case f.Differs:
		w.Text("", "Its fallback (%s) does not give what the op gives: %s.", names, f.Why)
	default:
		w.Text("", "Unknown fallback (%s), which could not be run: %s.", names, f.Why)
	}
}
