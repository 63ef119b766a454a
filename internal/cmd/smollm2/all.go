package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"
)

// pipeline is the whole line on one variant: fetch, rewrite, check.
type pipeline struct {
	fetch    fetcher
	check    settings
	variant  string
	rewriter string // path of rope-rewrite
}

// yarnGolden is the method of the goldens named yarn4.
const yarnGolden = "yarn:factor=4,original_max_position_embeddings=8192"

func (p *pipeline) run(ctx context.Context, command *cobra.Command) error {
	out := command.OutOrStdout()
	p.fetch.log, p.check.log = command.ErrOrStderr(), command.ErrOrStderr()
	if err := p.fetch.run(ctx, []string{p.variant}); err != nil {
		return err
	}
	if err := setLibraries(); err != nil {
		return err
	}
	folder := filepath.Join(p.fetch.out, p.variant)
	original, same, yarn := filepath.Join(folder, graphFile), filepath.Join(folder, "model.rope.onnx"), filepath.Join(folder, "model.yarn.onnx")

	if err := p.rewrite(ctx, command, original, same); err != nil {
		return err
	}
	c, err := p.check.compare(ctx, original, same)
	if err != nil {
		return err
	}
	c.print(out)
	if err := p.rewrite(ctx, command, original, yarn, "--scaling", yarnGolden); err != nil {
		return err
	}
	d, err := againstGolden(ctx, yarn, p.check.texts, p.check.work, p.variant, "yarn4")
	if err != nil {
		return err
	}
	d.print(out, yarn, "yarn4", p.variant)
	if c.Verdict != "same" || !d.ok() {
		return errors.New("the rewrite is wrong, see above")
	}
	fmt.Fprintf(out, "All equal. Try it: go run ./examples/generate -model %s -chat -prompt \"Why is the sky blue?\"\n", same)
	return nil
}

// rewrite runs rope-rewrite and demands that it rewrites every site.
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
		Sites []struct {
			Status string `json:"status"`
		} `json:"sites"`
		Seconds float64 `json:"seconds"`
	}
	if err := json.Unmarshal(output, &report); err != nil {
		return fmt.Errorf("the report of %s: %w", p.rewriter, err)
	}
	rewritten := 0
	for _, site := range report.Sites {
		if site.Status == "rewritten" {
			rewritten++
		}
	}
	fmt.Fprintf(command.OutOrStdout(), "%s: %d of %d attention sites rewritten in %.1f s\n", to, rewritten, len(report.Sites), report.Seconds)
	if rewritten == 0 || rewritten < len(report.Sites) {
		return fmt.Errorf("%s was not rewritten as a whole", model)
	}
	return nil
}
