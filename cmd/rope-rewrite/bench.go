package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/internal/modelfiles"
)

// benchmark is what the bench command is asked for.
type benchmark struct {
	*cli.Common
	lengths cli.TokenList
	tokens  cli.TokenCount
	rounds  int
	threads int
}

// timing is the time and memory of a model at one length: medians over the rounds.
type timing struct {
	Model      string  `json:"model"`
	Length     int     `json:"length"`
	FirstToken float64 `json:"first_token_seconds"` // from the call with all tokens to its logits
	FirstCPU   float64 `json:"first_token_cpu_seconds"`
	Token      float64 `json:"token_seconds"` // of each later token
	TokenCPU   float64 `json:"token_cpu_seconds"`
	Peak       int64   `json:"peak_bytes"` // largest resident memory of the process; 0 where the system does not tell
}

func newBench(c *cli.Common) *cobra.Command {
	b := &benchmark{Common: c}
	cmd := &cobra.Command{
		Use:   "bench ORIGINAL.onnx PATCHED.onnx [--lengths N,N,...]",
		Short: "Time two language models: first token, later tokens, memory",
		Long: `Runs both models in turn on random tokens, each run in a separate process. For
each prompt length it measures the time to the first token, the tokens per
second after it, and the peak memory. A fixed-capacity cache stays in one
buffer; a growing cache is passed from call to call. Given two folders, it times
the models that have the same name in both.`,
		Args: cli.TwoModels("ORIGINAL.onnx", "PATCHED.onnx"),
		RunE: func(cmd *cobra.Command, args []string) error { return b.run(cmd, args) },
	}
	b.Prints(cmd, []timing{}, cli.OfFolder[[]timing]{})
	f := cmd.Flags()
	b.lengths, b.tokens = cli.TokenList{512, 2048}, 16
	f.Var(&b.lengths, "lengths", "lengths of the prompts in `TOKENS`, separated by commas")
	f.Var(&b.tokens, "tokens", "number of `TOKENS` to generate and time after each prompt")
	f.IntVar(&b.rounds, "rounds", 3, "run each model `N` times and report the median")
	f.IntVar(&b.threads, "threads", 0, "`NUMBER` of threads for one operator; 0 means ONNX Runtime's default")
	return cmd
}

func (b *benchmark) run(cmd *cobra.Command, models []string) error {
	switch {
	case len(b.lengths) == 0 || slices.Min(b.lengths) < 1:
		return cli.Usage("--lengths: expected numbers of tokens above 0")
	case b.tokens < 1 || b.rounds < 1 || b.threads < 0:
		return cli.Usage("--tokens and --rounds must be above 0, and --threads at least 0")
	}
	return cli.Work[[]timing]{
		Do: func(ctx context.Context, p modelfiles.Pair, say func(string)) ([]timing, error) {
			return b.time(ctx, []string{p.A, p.B}, say)
		},
		Name:    func(t []timing) string { return t[1].Model },
		Text:    timings,
		Done:    "timed",
		Code:    func([]timing) int { return 0 },
		Unable:  func(error) int { return 0 },
		Nothing: errors.New("no pair of models could be timed"),
	}.Run(cmd.Context(), b.Common, cmd, models, cli.NewProgress(cmd.ErrOrStderr()))
}

// time times two models.
func (b *benchmark) time(ctx context.Context, models []string, say func(string)) (all []timing, err error) {
	for _, length := range b.lengths {
		rounds := make([][]timing, len(models))
		for round := range b.rounds {
			for i, model := range models {
				say(fmt.Sprintf("%s, %d tokens, round %d of %d", filepath.Base(model), length, round+1, b.rounds))
				t, err := b.probe(ctx, model, int(length))
				if err != nil {
					return nil, err
				}
				rounds[i] = append(rounds[i], t)
			}
		}
		for _, r := range rounds {
			all = append(all, medians(r))
		}
	}
	return all, nil
}

// timings prints a table, patched models below their originals.
func timings(w *cli.Writer, all []timing) {
	w.Line("%8s %-10s %14s %8s %12s %8s %12s", "tokens", "model", "first token", "", "tokens/s", "", "peak memory")
	for i, t := range all {
		name, first, later := "original", "", ""
		if i%2 == 1 {
			before := all[i-1]
			name = "patched"
			first, later = fmt.Sprintf("%.2fx", before.FirstToken/t.FirstToken), fmt.Sprintf("%.2fx", before.Token/t.Token)
		}
		w.Line("%8d %-10s %12.3f s %8s %12.1f %8s %9.0f MB", t.Length, name, t.FirstToken, first, 1/t.Token, later, float64(t.Peak)/1e6)
	}
}

// medians takes the median of each figure, and the largest memory.
func medians(rounds []timing) timing {
	median := func(of func(timing) float64) float64 {
		var values []float64
		for _, r := range rounds {
			values = append(values, of(r))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	out := rounds[0]
	out.FirstToken = median(func(t timing) float64 { return t.FirstToken })
	out.FirstCPU = median(func(t timing) float64 { return t.FirstCPU })
	out.Token = median(func(t timing) float64 { return t.Token })
	out.TokenCPU = median(func(t timing) float64 { return t.TokenCPU })
	for _, r := range rounds {
		out.Peak = max(out.Peak, r.Peak)
	}
	return out
}

// probe times a model once, in a process of its own: so its memory can be
// measured, and a model that ends ONNX Runtime does not end this command.
func (b *benchmark) probe(ctx context.Context, model string, length int) (t timing, err error) {
	program, err := cli.Self()
	if err != nil {
		return t, err
	}
	args := []string{"bench-probe", model, "--onnxruntime=" + b.Runtime, "--ops-library=" + b.Library,
		fmt.Sprintf("--length=%d", length), fmt.Sprintf("--tokens=%d", b.tokens), fmt.Sprintf("--threads=%d", b.threads)}
	command := exec.CommandContext(ctx, program, args...)
	if _, err := command.StdinPipe(); err != nil { // which the probe waits on, to end with this process
		return t, err
	}
	stderr := &bytes.Buffer{}
	command.Stderr = stderr
	out, err := command.Output()
	if err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == cli.ExitFailed {
			text := strings.TrimPrefix(strings.Join(strings.Fields(stderr.String()), " "), "rope-rewrite: ")
			return t, errors.New(text)
		}
		return t, fmt.Errorf("timing %s: %w", model, err)
	}
	return t, json.Unmarshal(out, &t)
}

// peakMemory is the largest resident memory of this process so far; 0 where
// there is no /proc.
func peakMemory() int64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	var kilobytes int64
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			if _, err := fmt.Sscan(value, &kilobytes); err != nil {
				return 0
			}
		}
	}
	return kilobytes << 10
}
