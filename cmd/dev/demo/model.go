package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/validate"
)

// model rewrites one export three times and compares what comes out.
func (d *demo) model(ctx context.Context, eng engine.Engine, worker, name string) error {
	original := filepath.Join(d.models, name, "model.onnx")
	patched, report, err := d.rewrite(ctx, original, name+".onnx")
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\n%s: %d of %d attention layers verified equal\n", name, report.Rewritten(), len(report.Sites))
	same, err := validate.Run(ctx, original, patched, validate.Options{
		Rewrite:     rewrite.Options{Evaluation: rewrite.Evaluation{Runtime: d.libraries.Runtime, Library: d.libraries.Library, Worker: []string{worker}}},
		OutputsOnly: true,
	})
	if err != nil {
		return err
	}
	for _, c := range same.Cases {
		d.row("none", c.Name, "the original", c.Difference)
	}
	for _, m := range []struct{ name, golden, with, flag, spec string }{
		{"yarn", "yarn4", "transformers", "--scaling", "yarn:factor=4,original_max_position_embeddings=16"},
		{"string", "string", "eager reference", "--positions", "string:shift=16,window=4"},
	} {
		patched, _, err := d.rewrite(ctx, original, name+"."+m.name+".onnx", m.flag, m.spec)
		if err != nil {
			return err
		}
		if err := d.compare(ctx, eng, patched, m.name, m.golden, m.with); err != nil {
			return err
		}
	}
	return nil
}

// compare runs a patched model in prefill and token by token on what a golden
// was made from.
func (d *demo) compare(ctx context.Context, eng engine.Engine, path, method, key, with string) error {
	model, err := decoder.Open(ctx, eng, path, decoder.Options{})
	if err != nil {
		return err
	}
	defer model.Close()
	for _, padded := range []bool{false, true} {
		g, err := readGolden(d.goldens, key, padded)
		if err != nil {
			return err
		}
		for _, way := range []struct {
			name   string
			chunks []int64
		}{
			{"prefill", []int64{g.sequence.Length}},
			{"token by token", slices.Repeat([]int64{1}, int(g.sequence.Length))},
		} {
			logits, err := model.Chunks(ctx, g.sequence, way.chunks...)
			if err != nil {
				return err
			}
			difference, err := g.difference(logits)
			if err != nil {
				return err
			}
			if padded {
				way.name += ", left padding"
			}
			d.row(method, way.name, with, difference)
		}
	}
	return nil
}

// rewrite runs the command and expects every attention to be rewritten.
func (d *demo) rewrite(ctx context.Context, model, name string, flags ...string) (string, *rewrite.Report, error) {
	output := filepath.Join(d.folder, name)
	args := append([]string{model, "-o", output, "--force", "--json"}, flags...)
	for flag, path := range map[string]string{"--onnxruntime": d.libraries.Runtime, "--ops-library": d.libraries.Library} {
		if path != "" {
			args = append(args, flag, path)
		}
	}
	printed, err := exec.CommandContext(ctx, d.command, args...).Output()
	var report rewrite.Report
	if parsed := json.Unmarshal(printed, &report); err == nil {
		err = parsed
	}
	for _, s := range report.Sites {
		if s.Status != rewrite.Rewritten {
			return "", nil, fmt.Errorf("layer %d is unchanged: %s", s.Layer, s.Reason)
		}
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && len(exit.Stderr) > 0 {
		err = errors.New(strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", filepath.Base(d.command), err)
	}
	return output, &report, nil
}
