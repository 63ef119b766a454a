package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/internal/buildfiles"
)

// pipeline is the whole line on some variants: fetch, rewrite, check.
type pipeline struct {
	fetch    *fetcher
	check    settings
	variants []string
	rewriter string // path of rope-rewrite
	targets  bool   // what the other targets write is compared too
}

// yarnGolden is the method of the goldens named yarn4.
const yarnGolden = "yarn:factor=4,original_max_position_embeddings=8192"

// goldenOf names the variant whose goldens a variant must give: those with the
// same weights and θ share them. A variant with weights of its own has none.
var goldenOf = map[string]string{
	"optimum": "optimum", "dynamo18": "dynamo18", "dynamo23": "dynamo18", "genai-fp32": "dynamo18",
}

func (p *pipeline) run(ctx context.Context, command *cobra.Command) error {
	out := command.OutOrStdout()
	p.fetch.log, p.check.log = command.ErrOrStderr(), command.ErrOrStderr()
	if err := p.fetch.run(ctx, p.variants); err != nil {
		return err
	}
	if err := buildfiles.SetLibraries(); err != nil {
		return err
	}
	var wrong []string
	for _, variant := range p.variants {
		fmt.Fprintf(out, "\n%s\n", variant)
		same, err := p.checkVariant(ctx, command, variant)
		if err != nil {
			return fmt.Errorf("%s: %w", variant, err)
		}
		if !same {
			wrong = append(wrong, variant)
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("the rewrite of %s is wrong, see above", strings.Join(wrong, ", "))
	}
	fmt.Fprintf(out, "\nAll equal. Try it: eval \"$(make -s env)\"; go run ./examples/generate -model %s -chat -prompt \"Why is the sky blue?\"\n",
		filepath.Join(p.fetch.out, p.variants[0], rewrittenFile))
	return nil
}

const rewrittenFile = "model.rope.onnx"

// checkVariant rewrites a variant without a method, which must change nothing,
// and with YaRN, which must give transformers' logits.
func (p *pipeline) checkVariant(ctx context.Context, command *cobra.Command, variant string) (bool, error) {
	out := command.OutOrStdout()
	folder := filepath.Join(p.fetch.out, variant)
	original, same, yarn := filepath.Join(folder, graphFile), filepath.Join(folder, rewrittenFile), filepath.Join(folder, "model.yarn.onnx")
	if err := p.rewrite(ctx, command, original, same); err != nil {
		return false, err
	}
	check := p.check
	if _, ok := derivations[variant]; ok {
		check.reference = filepath.Join(folder, referenceFile)
	}
	c, err := check.compare(ctx, original, same)
	if err != nil {
		return false, err
	}
	c.print(out)
	if p.targets {
		if same, err := p.checkTargets(ctx, command, check, original, same); !same {
			return false, err
		}
	}
	golden, ok := goldenOf[variant]
	if !ok {
		fmt.Fprintf(out, "no golden of transformers for %s: its weights are its own\n", variant)
		return c.Verdict == "same", nil
	}
	if err := p.rewrite(ctx, command, original, yarn, "--scaling", yarnGolden); err != nil {
		return false, err
	}
	d, err := againstGolden(ctx, yarn, p.check.texts, p.check.work, golden, "yarn4")
	if err != nil {
		return false, err
	}
	d.print(out, yarn, "yarn4", golden)
	return c.Verdict == "same" && d.ok(), nil
}

// checkTargets compares what the other targets write with the original: the op's body, of
// the model that holds the op, and GroupQueryAttention.
func (p *pipeline) checkTargets(ctx context.Context, command *cobra.Command, check settings, original, byOp string) (bool, error) {
	check.lengths = nil
	for _, t := range []struct {
		name, model string
		flags       []string
	}{
		{"body", byOp, []string{"--target", "onnx", "--restore"}},
		{"contrib", original, []string{"--target", "contrib", "--context", "8192"}},
	} {
		to := filepath.Join(filepath.Dir(original), "model."+t.name+".onnx")
		if err := p.rewrite(ctx, command, t.model, to, t.flags...); err != nil {
			return false, err
		}
		c, err := check.compare(ctx, original, to)
		if err != nil {
			return false, err
		}
		c.print(command.OutOrStdout())
		if c.Verdict != "same" {
			return false, nil
		}
	}
	return true, nil
}

// rewrite runs rope-rewrite and demands that it rewrites every attention layer.
func (p *pipeline) rewrite(ctx context.Context, command *cobra.Command, model, to string, flags ...string) error {
	rewriter := exec.CommandContext(ctx, p.rewriter, append([]string{model, "-o", to, "--force", "--json"}, flags...)...)
	rewriter.Stderr = command.ErrOrStderr()
	output, err := rewriter.Output()
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s does not exist; run make build first", p.rewriter)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", p.rewriter, model, err)
	}
	var report struct {
		Layers []struct {
			Status string `json:"status"`
		} `json:"layers"`
		Seconds float64 `json:"seconds"`
	}
	if err := json.Unmarshal(output, &report); err != nil {
		return fmt.Errorf("the report of %s: %w", p.rewriter, err)
	}
	rewritten := 0
	for _, layer := range report.Layers {
		if layer.Status == "rewritten" {
			rewritten++
		}
	}
	fmt.Fprintf(command.OutOrStdout(), "%s: %d of %d attention layers rewritten in %.1f s\n", to, rewritten, len(report.Layers), report.Seconds)
	if rewritten == 0 || rewritten < len(report.Layers) {
		return fmt.Errorf("%s was not rewritten as a whole", model)
	}
	return nil
}
