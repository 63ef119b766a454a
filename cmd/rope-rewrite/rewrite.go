package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// rewriteCommand is rope-rewrite MODEL.onnx.
type rewriteCommand struct {
	*common
	output         string
	scaling        string
	positions      string
	ropeParameters string
	context        int64
	layers         string
	exactAngles    bool
	dryRun         bool
	allowPartial   bool
	force          bool
}

func (r *rewriteCommand) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&r.output, "output", "o", "", "write to `OUT.onnx` (default MODEL.rope.onnx beside the input)")
	f.StringVar(&r.scaling, "scaling", "", "frequencies: none, theta, linear or yarn, as `SPEC`")
	f.StringVar(&r.positions, "positions", "", "distances: identity or string, as `SPEC`")
	f.StringVar(&r.ropeParameters, "rope-parameters", "", "Hugging Face's rope_parameters, as `JSON` or a file that holds it")
	f.Int64Var(&r.context, "context", 0, "`TOKENS` that the patched model is meant for")
	f.StringVar(&r.layers, "layers", "", "rewrite only these `LAYERS`, for example 0-3,7")
	f.BoolVar(&r.exactAngles, "exact-angles", false, "do not round angles to float32 as exporters do")
	f.BoolVar(&r.dryRun, "dry-run", false, "prove and report, write nothing")
	f.BoolVar(&r.allowPartial, "allow-partial", false, "write even if some sites could not be rewritten")
	f.BoolVar(&r.force, "force", false, "replace an output that exists")
}

func (r *rewriteCommand) run(cmd *cobra.Command, path string) error {
	opts, err := r.options()
	if err != nil {
		return err
	}
	output := r.output
	if output == "" {
		output = rewrite.DefaultOutput(path)
	}
	if !r.dryRun && !r.force {
		if _, err := os.Lstat(output); err == nil {
			return fmt.Errorf("%s exists; give --force to replace it or -o for another name", output)
		}
	}
	model, err := open(path)
	if err != nil {
		return err
	}
	defer model.Close()
	progress := newProgress(cmd.ErrOrStderr())
	opts.Progress = progress.say
	report, err := rewrite.Rewrite(cmd.Context(), model, opts)
	progress.done()
	if noAttention(err) {
		return r.none(cmd, report, err)
	}
	if err != nil {
		return err
	}
	partial := report.Unproven() > 0
	if !r.dryRun && report.Rewritten() > 0 && (!partial || r.allowPartial) {
		if err := model.Save(output, onnx.SaveOptions{Force: r.force}); err != nil {
			return err
		}
		report.Output = output
	}
	if err := r.print(cmd.OutOrStdout(), cmd.ErrOrStderr(), report, func(w *writer) { r.summary(w, report) }); err != nil {
		return err
	}
	if partial {
		return &exitError{exitPartial, errReported}
	}
	return nil
}

// none reports a model without rotary attention.
func (c *common) none(cmd *cobra.Command, report *rewrite.Report, err error) error {
	if c.json {
		if err := c.print(cmd.OutOrStdout(), cmd.ErrOrStderr(), report, nil); err != nil {
			return err
		}
	}
	return &exitError{exitNoAttention, fmt.Errorf("%s: %w; nothing written", report.Model, err)}
}

// options turns the flags into what the rewriter takes.
func (r *rewriteCommand) options() (rewrite.Options, error) {
	opts := r.common.options()
	opts.Context.Length = r.context
	opts.ExactAngles = r.exactAngles
	if r.context < 0 {
		return opts, usageError("--context %d: a number of tokens above 0 was expected", r.context)
	}
	if r.scaling != "" && r.ropeParameters != "" {
		return opts, usageError("give --scaling or --rope-parameters, not both")
	}
	for _, f := range []struct {
		flag, text string
		parse      func(string) (rope.Spec, error)
	}{
		{"--scaling", r.scaling, func(s string) (rope.Spec, error) { return rope.ParseSpec(rope.ScalingAxis, s) }},
		{"--rope-parameters", r.ropeParameters, parseRopeParameters},
		{"--positions", r.positions, func(s string) (rope.Spec, error) { return rope.ParseSpec(rope.PositionsAxis, s) }},
	} {
		if f.text == "" {
			continue
		}
		spec, err := f.parse(f.text)
		if err != nil {
			return opts, usageError("%s: %w", f.flag, err)
		}
		opts.Edits = append(opts.Edits, spec)
	}
	if r.layers != "" {
		selected, err := parseLayers(r.layers)
		if err != nil {
			return opts, usageError("--layers: %w", err)
		}
		opts.Layers = selected
	}
	return opts, nil
}

func (c *common) options() rewrite.Options {
	opts := rewrite.Options{Runtime: c.runtime, Library: c.library}
	if self, err := os.Executable(); err == nil {
		opts.Worker = []string{self}
	}
	return opts
}

// parseRopeParameters takes the dictionary itself or the name of a file with it.
func parseRopeParameters(text string) (rope.Spec, error) {
	data := []byte(text)
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		var err error
		if data, err = os.ReadFile(filepath.Clean(text)); err != nil {
			if errors.Is(err, os.ErrNotExist) {
				return rope.Spec{}, fmt.Errorf("%q is neither a JSON object nor a file", text)
			}
			return rope.Spec{}, err
		}
	}
	return rope.ParseRopeParameters(data)
}
