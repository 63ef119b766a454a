package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// rewriteCommand is rope-rewrite MODEL.onnx and rope-rewrite FOLDER.
type rewriteCommand struct {
	*cli.Common
	output         string
	scaling        []string
	positions      []string
	mask           []string
	opset          int
	ropeParameters string
	context        cli.TokenCount
	layers         string
	exactAngles    bool
	restore        bool
	dryRun         bool
	allowPartial   bool
	recipe         string
	force          bool
	weights        cli.Weights
	helpAll        bool
	limits         cli.Limits
}

func (r *rewriteCommand) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&r.output, "output", "o", "", "write to `OUT.onnx` (default MODEL.rope.onnx beside the input), or of a folder to a folder (default FOLDER.rope)")
	f.StringArrayVar(&r.scaling, "scaling", nil, "frequencies, for example yarn or longrope, as `SPEC`; SPEC@LAYERS (0-3,7) is for these layers only, SPEC@all for all, also those with a window of which others have none, and the flag may be repeated")
	f.StringArrayVar(&r.positions, "positions", nil, "distances, for example string or dual-chunk, as `SPEC`")
	f.StringArrayVar(&r.mask, "mask", nil, "who sees whom, for example anchor or sliding-window, as `SPEC`")
	f.String("documents", "", "`input` adds the int64 graph input "+rewrite.DocumentsInput+" [batch, total length] for masks over documents; input:NAME names it; separator:TOKEN counts documents by the token that each begins with (separator:TOKEN,ends: that each ends with), in models without a cache")
	f.String("kv", "", "key-value cache: growing, or fixed:capacity=N for buffers of N tokens (8192 or 8k) with the int32 input "+rewrite.CacheLengthInput+" [batch], as `SPEC`")
	f.String("logits", "", "logits of `all` tokens of a call, or of the last of each row alone: the model then takes, if it is fed, the int64 input "+rewrite.LogitsPlacesInput+" [batch] with another token's place (last:input=NAME names it)")
	f.String("cache", "", "keys in the cache: `rotated` as exporters store them, or raw, rotated when they are read; methods that need raw choose it themselves")
	f.String("precision", "", "products of 16-bit queries and keys: `exact` keeps rotated ones in float32, fast rounds them to the model's type first; rope-rewrite drift shows the difference")
	f.String("target", "", "`ops` puts the fused op into the model; onnx writes every method in standard ONNX operators, which need no library and no functions, into the model's own nodes where these can hold it; contrib writes ONNX Runtime's GroupQueryAttention, where that computes it (contrib:onnxruntime=1.22 for runtimes from 1.22 on)")
	f.String("fallback", "", "`KIND`: functions (the default) gives the model, beside the fused op, the op in standard ONNX operators, with which it runs where the op library is missing; none leaves it out")
	f.IntVar(&r.opset, "opset", 0, "raise the model to version `N` of ONNX's standard operators first, for a host that wants it or for the op's definition (16 bits need 15)")
	f.StringVar(&r.ropeParameters, "rope-parameters", "", "Hugging Face's rope_parameters, as `JSON`, or a file that holds it or a whole config.json; in place of --scaling")
	f.Var(&r.context, "context", "`TOKENS` that the patched model is meant for; methods derive from it what is not given")
	f.StringVar(&r.layers, "layers", "", "rewrite only these `LAYERS`, for example 0-3,7")
	f.StringVar(&r.recipe, "recipe", "", "take from `FILE`, in YAML, what is asked for (rope-rewrite inspect --recipe writes one); flags beside it count before it")
	f.BoolVar(&r.exactAngles, "exact-angles", false, "do not round angles to float32 as exporters do")
	f.String("base", "", "of a model that was rewritten before: start from the `original` values (the default), or from the carried ones, on top of the earlier methods")
	f.BoolVar(&r.restore, "restore", false, "take back what an earlier rewrite did: the model without a method, as the rewrite without one gives it")
	f.BoolVar(&r.dryRun, "dry-run", false, "prove and report, write nothing")
	f.BoolVar(&r.allowPartial, "allow-partial", false, "write even if some sites could not be rewritten")
	f.BoolVar(&r.force, "force", false, "replace an output that exists")
	r.weights.Flag(f)
	f.BoolVar(&r.helpAll, "help-all", false, "every command and flag")
	r.limits.Flags(cmd)
}

func (r *rewriteCommand) run(cmd *cobra.Command, path string) error {
	if err := r.follow(cmd); err != nil {
		return err
	}
	opts, selections, err := r.options(cmd)
	if err != nil {
		return err
	}
	work := r.rewrite
	if cli.IsFolder(path) {
		work = r.folder
	}
	return r.limits.Within(cmd, &opts, func(ctx context.Context) error { return work(ctx, cmd, path, opts, selections) })
}

func (r *rewriteCommand) rewrite(ctx context.Context, cmd *cobra.Command, path string, opts rewrite.Options, selections []cli.Selection) error {
	start := time.Now()
	output := r.output
	if output == "" {
		output = rewrite.DefaultOutput(path)
	}
	opts, err := opts.FindLibraries()
	if err != nil {
		return err
	}
	model, err := onnx.Open(path)
	if err != nil {
		return err
	}
	defer model.Close()
	if !r.dryRun {
		if err := cli.CheckOutput(output, path, r.force); err != nil {
			return err
		}
		if cmd.Flags().Changed("weights") && cli.SameFolder(output, path) {
			return cli.Usage("--weights says how weights come to another folder, and %s is in the model's own, where both models read the same file; name a folder with -o, or leave --weights out", output)
		}
	}
	progress := cli.NewProgress(cmd.ErrOrStderr())
	defer progress.Done()
	opts.Progress = progress.Say
	report, err := rewrite.Rewrite(ctx, model, opts)
	if errors.Is(err, rewrite.ErrNoAttention) {
		progress.Done()
		return r.NoAttention(cmd, report, fmt.Errorf("%w; nothing written", err))
	}
	partial := errors.Is(err, rewrite.ErrPartial)
	if partial && opts.Cache.Capacity > 0 {
		progress.Done()
		return r.partial(cmd, report, err)
	}
	if err != nil && !partial { // the summary says what is kept
		return err
	}
	if err := cli.CheckLayers(selections, len(report.Sites)); err != nil {
		return err
	}
	if r.context > 0 && len(opts.Edits)+len(opts.LayerEdits) == 0 && opts.Target.Name() != rewrite.Contrib { // whose tables go by it
		report.Warnings = append(report.Warnings, "--context changes nothing by itself; it is for methods ("+cli.MethodFlags()+")")
	}
	if !partial && !r.dryRun && report.Rewritten() > 0 {
		opts := onnx.SaveOptions{Force: r.force, Link: r.weights.Link, Placed: func(file onnx.PlacedFile) { report.Weights = append(report.Weights, file) }}
		if err := cli.Save(model, output, opts, progress, ctx.Err); err != nil {
			return err
		}
		report.Output = output
	}
	report.Seconds = time.Since(start).Seconds() // opening and writing included
	progress.Done()
	if err := r.ShowReport(cmd, report, func(w *cli.Writer) { r.summary(w, report) }); err != nil {
		return err
	}
	if report.Unproven() > 0 {
		return cli.Exit(cli.ExitPartial, cli.ErrReported)
	}
	return nil
}

// partial reports a model of which not enough could be rewritten, whatever is
// allowed.
func (r *rewriteCommand) partial(cmd *cobra.Command, report *rewrite.Report, err error) error {
	if printed := r.ShowReport(cmd, report, func(w *cli.Writer) { cli.Sites(w, report) }); printed != nil {
		return printed
	}
	return cli.Exit(cli.ExitPartial, fmt.Errorf("%w; nothing written", err))
}

// options turns the flags into what the rewriter takes, and returns which layers
// they name.
func (r *rewriteCommand) options(cmd *cobra.Command) (opts rewrite.Options, selections []cli.Selection, err error) {
	if opts, err = r.Common.Options(); err != nil {
		return opts, nil, err
	}
	given := cmd.Flags().Changed
	opts.Context.Length = int64(r.context)
	opts.Numerics.ExactAngles = r.exactAngles
	opts.Earlier.Restore = r.restore
	opts.Output.OperatorSet = int64(r.opset)
	opts.AllowUnchanged = r.allowPartial
	switch {
	case given("context") && r.context < 1:
		return opts, nil, cli.Usage("--context %d: a number of tokens above 0 was expected", r.context)
	case given("opset") && r.opset < 1:
		return opts, nil, cli.Usage("--opset %d: a version of ONNX's standard operators was expected, such as 18", r.opset)
	case given("scaling") && given("rope-parameters"):
		return opts, nil, cli.Usage("--scaling and --rope-parameters are two ways to say the same; give one")
	case given("output") && r.output == "":
		return opts, nil, cli.Usage("-o: the name of a file was expected")
	}
	for _, f := range []struct {
		axis  rope.Axis
		texts []string
	}{{rope.ScalingAxis, r.scaling}, {rope.PositionsAxis, r.positions}, {rope.MaskAxis, r.mask}} {
		for _, text := range f.texts {
			selected, err := cli.AddEdit(&opts, f.axis, text)
			if err != nil {
				return opts, nil, cli.Usage("--%s", flagged(f.axis.String(), err))
			}
			selections = append(selections, cli.Selection{Given: fmt.Sprintf("--%v %s", f.axis, text), Layers: selected})
		}
	}
	if given("rope-parameters") {
		if err := cli.AddRopeParameters(&opts, r.ropeParameters); err != nil {
			return opts, nil, cli.Usage("--%s", flagged("rope-parameters", err))
		}
	}
	for _, flag := range []string{"cache", "precision", "base", "fallback", "target", "documents", "kv", "logits"} {
		if !given(flag) {
			continue
		}
		if err := cli.SetWord(&opts, flag, cmd.Flags().Lookup(flag).Value.String()); err != nil {
			return opts, nil, cli.Usage("--%s %w", flag, err)
		}
	}
	if opts.Cache.Capacity > 0 && (given("layers") || r.allowPartial) {
		return opts, nil, cli.Usage("--kv fixed needs every attention to be rewritten; --layers and --allow-partial cannot go with it")
	}
	if given("layers") {
		selected, err := cli.ParseLayers(r.layers)
		if err != nil {
			return opts, nil, cli.Usage("--layers: %w", err)
		}
		opts.Layers = selected.Has
		selections = append(selections, cli.Selection{Given: "--layers", Layers: selected})
	}
	return opts, selections, nil
}

// flagged puts a flag's name before an error that may begin with it already:
// package rope's name the axis, which is the flag.
func flagged(flag string, err error) string {
	text := err.Error()
	for _, name := range []string{flag, strings.ReplaceAll(flag, "-", "_")} {
		if rest, ok := strings.CutPrefix(text, name); ok {
			return flag + rest
		}
	}
	return flag + ": " + text
}
