package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/recipe"
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
	kvScales       string
	proveWith      string
	restore        bool
	dryRun         bool
	allowPartial   bool
	anyLength      bool
	recipe         string
	followed       []recipe.Flag // of the recipe, those that count
	force          bool
	weights        cli.Weights
	followLinks    bool
	helpAll        bool
	limits         cli.Limits
}

func (r *rewriteCommand) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&r.output, "output", "o", "", "write to `OUT.onnx` (default MODEL.rope.onnx beside the input); for a folder, to a new folder (default FOLDER.rope)")
	f.StringArrayVar(&r.scaling, "scaling", nil, "change RoPE frequencies, as `SPEC`, e.g. yarn:factor=4. Add @0-3,7 for some layers, or @full, @windowed or @all for layers by kind. Repeatable.")
	f.StringArrayVar(&r.positions, "positions", nil, "change the distance that RoPE uses for a query and a key, as `SPEC`")
	f.StringArrayVar(&r.mask, "mask", nil, "limit which keys a query attends to, as `SPEC`, e.g. sliding-window:window=4k")
	f.String("documents", "", "for masks over documents, take document ids from `SOURCE`. input adds the int64 graph input "+rewrite.DocumentsInput+" [batch, total length]; input:NAME gives it that name. separator:TOKEN starts a new document at each TOKEN, or after it with \",ends\"; only for models without a KV cache.")
	f.String("kv", "", "KV cache, as `SPEC`: growing, or fixed:capacity=N for buffers of N tokens (8192 or 8k) with the int32 input "+rewrite.CacheLengthInput+" [batch], with ring=true of its window alone in layers that have one; with type=float16, bfloat16 or int8 (growing:type=int8) smaller elements")
	f.StringVar(&r.kvScales, "kv-scales", "", "with --target contrib and --kv type=int8: the fixed scales of the caches, from `FILE`, which rope-rewrite scales writes")
	f.String("logits", "", "compute logits of `TOKENS`: all of a call, or only the last of each row. last adds the optional int64 input "+rewrite.LogitsPlacesInput+" [batch], which picks another token of each row by its index (last:input=NAME gives it another name).")
	f.String("cache", "", "cache keys as `KIND`: rotated, as exporters do, or raw: un-rotated, and rotated when they are read. Methods that need raw choose it.")
	f.String("precision", "", "multiply rotated queries and keys as `KIND`: exact (in float32), or fast (rounded to the model's 16-bit type first; in a float32 model prompts are rounded to bfloat16, where the CPU multiplies it). rope-rewrite drift shows the difference.")
	f.String("angles", "", "compute rotation angles as `KIND`: exact (in float64), or original (rounded as the exporter does, mostly to float32). Default: exact in layers whose frequencies --scaling changes, original in others.")
	f.String("target", "", "write attention as `NAME`: ops (default), the fused op; onnx, standard ONNX operators, which need no library and no functions (the model's own nodes stay where possible); contrib, ONNX Runtime's GroupQueryAttention, where that computes the same (contrib:onnxruntime=1.22 for runtimes from 1.22 on)")
	f.String("fallback", "", "`KIND` of fallback for hosts without the op library: functions (default: the op in standard ONNX operators), or none")
	f.StringVar(&r.proveWith, "prove-with", "", "verify layers with the ONNX Runtime library at `PATH`, the one that will run the model, in the place of --onnxruntime; PATH:provider=NAME on an execution provider that it has, such as CUDA or XNNPACK")
	f.IntVar(&r.opset, "opset", 0, "convert the model to opset `N` first. Some runtimes need it, and so does the fallback of a 16-bit model (15 or newer).")
	f.StringVar(&r.ropeParameters, "rope-parameters", "", "instead of --scaling: Hugging Face's rope_parameters as `JSON`, a file with them, or a whole config.json")
	f.Var(&r.context, "context", "length in `TOKENS` that the patched model is meant for; methods derive missing parameters from it")
	f.StringVar(&r.layers, "layers", "", "rewrite only these `LAYERS`, e.g. 0-3,7")
	f.StringVar(&r.recipe, "recipe", "", "read flags from `FILE`, in YAML (rope-rewrite inspect --recipe prints one); flags on the command line override it")
	f.String("base", "", "for a model that is already rewritten, start from `VALUES`: original (default) replaces the earlier methods, carried adds to them")
	f.BoolVar(&r.restore, "restore", false, "remove the methods of an earlier rewrite; the model is then as after a rewrite without a method")
	f.BoolVar(&r.dryRun, "dry-run", false, "verify and report, write nothing")
	f.BoolVar(&r.allowPartial, "allow-partial", false, "write even if some attention layers could not be rewritten")
	f.BoolVar(&r.anyLength, "require-any-length", false, "write nothing, and end with exit code 7, if a layer is known to be equal up to some number of tokens alone")
	f.BoolVar(&r.force, "force", false, "replace an existing output")
	r.weights.Flag(f)
	f.BoolVar(&r.followLinks, "follow-links", false, "read files that are links out of the model's folder too, and copy them with a folder; else such a link is left out")
	f.BoolVar(&r.helpAll, "help-all", false, "show every command and flag")
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
	return r.unfit(r.limits.Within(cmd, &opts, func(ctx context.Context) error { return work(ctx, cmd, path, opts, selections) }))
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
			return cli.Usage("--weights is for an output in another folder; %s is in the model's folder, where both models read the same weights. Name another folder with -o, or leave --weights out", output)
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
	limited := errors.Is(err, rewrite.ErrLimited)
	partial := errors.Is(err, rewrite.ErrPartial) || limited
	if partial && opts.Cache.Capacity > 0 {
		progress.Done()
		return r.partial(cmd, report, err)
	}
	if err != nil && !partial { // the summary says what is unchanged
		return err
	}
	if err := cli.CheckLayers(selections, len(report.Sites)); err != nil {
		return err
	}
	if r.context > 0 && len(opts.Edits)+len(opts.LayerEdits) == 0 && opts.Target.Name() != rewrite.Contrib { // whose tables depend on it
		report.Warnings = append(report.Warnings, "--context has no effect without a method ("+cli.MethodFlags()+")")
	}
	if !partial && !r.dryRun && report.Replaced() > 0 {
		if err := checkCacheCost(ctx, path, opts, report); err != nil {
			return err
		}
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
	switch {
	case report.Unproven() > 0:
		return cli.Exit(cli.ExitPartial, cli.ErrReported)
	case limited:
		return cli.Exit(cli.ExitLimited, cli.ErrReported)
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
	opts.Earlier.Restore = r.restore
	opts.Source.FollowLinks = r.followLinks
	opts.Output.OperatorSet = int64(r.opset)
	opts.AllowUnchanged, opts.AnyLength = r.allowPartial, r.anyLength
	opts.PlanOnly = r.dryRun
	switch {
	case given("context") && r.context < 1:
		return opts, nil, cli.Usage("--context %d: expected a number of tokens above 0", r.context)
	case given("opset") && r.opset < 1:
		return opts, nil, cli.Usage("--opset %d: expected a version of ONNX's standard operators such as 18", r.opset)
	case given("scaling") && given("rope-parameters"):
		return opts, nil, cli.Usage("--scaling and --rope-parameters both give a scaling; give only one of them")
	case given("output") && r.output == "":
		return opts, nil, cli.Usage("-o needs the name of a file")
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
			selections = append(selections, r.selection(f.axis.String(), text, fmt.Sprintf("--%v %s", f.axis, text), selected))
		}
	}
	if given("rope-parameters") {
		if err := cli.AddRopeParameters(&opts, r.ropeParameters); err != nil {
			return opts, nil, cli.Usage("--%s", flagged("rope-parameters", err))
		}
	}
	for _, flag := range []string{"cache", "precision", "angles", "base", "fallback", "target", "documents", "kv", "logits"} {
		if !given(flag) {
			continue
		}
		if err := cli.SetWord(&opts, flag, cmd.Flags().Lookup(flag).Value.String()); err != nil {
			return opts, nil, cli.Usage("--%s %w", flag, err)
		}
	}
	if given("kv-scales") {
		if opts.Cache.Scales, err = cli.ReadCacheScales("--kv-scales", r.kvScales); err != nil {
			return opts, nil, cli.Usage("%w", err)
		}
	}
	if given("prove-with") {
		if opts.Evaluation.ProveWith, err = cli.ParseProveWith(r.proveWith); err != nil {
			return opts, nil, cli.Usage("--prove-with %w", err)
		}
	}
	if opts.Cache.Capacity > 0 && (given("layers") || r.allowPartial) {
		return opts, nil, cli.Usage("--kv fixed needs every attention layer to be rewritten; it cannot be combined with --layers or --allow-partial")
	}
	if given("layers") {
		selected, err := cli.ParseLayers(r.layers)
		if err != nil {
			return opts, nil, cli.Usage("--layers: %w", err)
		}
		opts.Layers = selected.Has
		selections = append(selections, r.selection("layers", r.layers, "--layers", selected))
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
