package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/lm"
)

// newBenchProbe is the process that bench starts for each model.
func newBenchProbe(c *cli.Common) *cobra.Command {
	var length, tokens, threads int
	cmd := &cobra.Command{
		Use:    "bench-probe MODEL",
		Short:  "Time one model once and print JSON (bench starts this)",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			go func() {
				io.Copy(io.Discard, os.Stdin) // the parent's end is closed when that ends, however it does
				os.Exit(cli.ExitFailed)
			}()
			t, err := timeModel(c, args[0], length, tokens, threads)
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(t)
		},
	}
	f := cmd.Flags()
	f.IntVar(&length, "length", 0, "tokens of the prompt")
	f.IntVar(&tokens, "tokens", 0, "tokens after it")
	f.IntVar(&threads, "threads", 0, "threads of an operator")
	return cmd
}

func timeModel(c *cli.Common, model string, length, tokens, threads int) (t timing, err error) {
	if err := customop.InitRuntime(c.Runtime); err != nil {
		return t, err
	}
	// Require: a model that ran on its fallback would be timed as if that were its speed.
	d, err := lm.OpenDecoder(model, lm.Options{Threads: threads, OpsLibrary: c.Library, Require: true})
	if err != nil {
		return t, err
	}
	s, err := d.NewSequence()
	if err != nil {
		return t, err
	}
	// Nothing is closed: the process ends here.
	if n := d.Capacity(); n > 0 && n < length+tokens {
		return t, fmt.Errorf("the cache of %s holds %d tokens, and %d are fed; give shorter --lengths, or rewrite the model with a larger capacity", model, n, length+tokens)
	}
	logits, err := s.Forward(context.Background(), lm.Row{Tokens: []int64{0}}) // a session's first run is slower than the others
	if err != nil {
		return t, err
	}
	vocabulary := uint64(logits.Vocabulary)
	if err := s.Truncate(0); err != nil {
		return t, err
	}
	state := uint64(1)
	draw := func() int64 {
		state = state*6364136223846793005 + 1442695040888963407
		return int64((state >> 33) % vocabulary)
	}
	prompt := make([]int64, length)
	for i := range prompt {
		prompt[i] = draw()
	}
	t = timing{Model: model, Length: length}
	forward := func(ids []int64) (seconds, cpu float64, err error) {
		start, busy := time.Now(), processorTime()
		_, err = s.Forward(context.Background(), lm.Row{Tokens: ids})
		return time.Since(start).Seconds(), processorTime() - busy, err
	}
	if t.FirstToken, t.FirstCPU, err = forward(prompt); err != nil {
		return t, err
	}
	var seconds, cpu []float64
	for range tokens {
		elapsed, c, err := forward([]int64{draw()})
		if err != nil {
			return t, err
		}
		seconds, cpu = append(seconds, elapsed), append(cpu, c)
	}
	slices.Sort(seconds)
	slices.Sort(cpu)
	t.Token, t.TokenCPU = seconds[len(seconds)/2], cpu[len(cpu)/2]
	t.Peak = peakMemory()
	return t, nil
}
