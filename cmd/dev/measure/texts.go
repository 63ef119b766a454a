package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/lm/sample"
)

// demand is what clients ask of a model.
type demand struct {
	clients, texts, prompt, answer, shared, rounds int
	seed                                           uint64
}

func textsCommand() *cobra.Command {
	var rows []int
	var threads, chunk int
	var noPrepacking bool
	l := demand{seed: 1}
	command := &cobra.Command{
		Use:   "texts MODEL",
		Short: "Measure many texts at the same time on one model (package lm)",
		Long: `Clients ask a model for texts, each for one after another. The model is loaded
once for each number of rows, and the numbers take turns. Prompts are random
tokens, so that nothing is shared but what --shared says. Memory is what
the process has for itself after the texts, without the file of weights.`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := customop.InitRuntime(""); err != nil {
				return err
			}
			out := command.OutOrStdout()
			fmt.Fprintf(out, "%d clients, %d texts each, prompts of %d tokens (%d shared), answers of %d, %d threads\n", l.clients, l.texts, l.prompt, l.shared, l.answer, threads)
			fmt.Fprintf(out, "%5s %12s %12s %12s %12s %10s %8s\n", "rows", "tokens/s", "first mean", "first max", "gap max", "own MB", "texts")
			for _, n := range rows {
				options := lm.Options{Rows: n, Queue: 10000, Threads: threads, Chunk: chunk, NoPrepacking: noPrepacking, Context: -1}
				if err := l.measure(out, args[0], options); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f := command.Flags()
	f.IntSliceVar(&rows, "rows", []int{1, 8}, "numbers of texts at the same time")
	f.IntVar(&l.clients, "clients", 8, "clients that ask at the same time")
	f.IntVar(&l.texts, "texts", 2, "texts that each client asks for")
	f.IntVar(&l.prompt, "prompt", 64, "tokens of a prompt")
	f.IntVar(&l.answer, "answer", 128, "tokens of an answer")
	f.IntVar(&l.shared, "shared", 0, "tokens that all prompts begin with")
	f.IntVar(&l.rounds, "rounds", 1, "how often all of this is asked of one model, to see whether its memory grows")
	f.IntVar(&threads, "threads", 1, "threads of an operator")
	f.IntVar(&chunk, "chunk", 0, "tokens of a piece of a prompt; 0 is the usual number")
	f.BoolVar(&noPrepacking, "no-prepacking", false, "leave weights mapped from their file")
	return command
}

// seen is what one client saw.
type seen struct {
	first, gaps []float64 // seconds
	tokens      int
}

func (l demand) measure(out io.Writer, path string, options lm.Options) (err error) {
	m, err := lm.Open(path, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	vocabulary := int64(m.Decoder().Vocabulary())
	rng := rand.New(rand.NewPCG(l.seed, 0))
	draw := func(n int) (tokens []int64) {
		for range n {
			tokens = append(tokens, rng.Int64N(vocabulary))
		}
		return tokens
	}
	ask := func(prompt []int64, answer int) (s seen, err error) {
		start := time.Now()
		last := start
		for _, err := range m.Generate(context.Background(), lm.Input{Tokens: prompt}, lm.GenerateOptions{MaxTokens: answer, IgnoreEnd: true, Sample: &sample.Options{}}) {
			if err != nil {
				return s, err
			}
			now := time.Now()
			if s.tokens == 0 {
				s.first = append(s.first, now.Sub(start).Seconds())
			} else {
				s.gaps = append(s.gaps, now.Sub(last).Seconds())
			}
			last = now
			s.tokens++
		}
		return s, nil
	}
	shared := draw(l.shared)
	if _, err := ask(draw(8), 2); err != nil { // the first calls of a session are slower than others
		return err
	}
	for range l.rounds {
		if err := l.round(out, options.Rows, func() []int64 { return slices.Concat(shared, draw(l.prompt-l.shared)) }, ask); err != nil {
			return err
		}
	}
	return nil
}

// round lets all clients ask for all their texts, and prints a line.
func (l demand) round(out io.Writer, rows int, newPrompt func() []int64, ask func(prompt []int64, answer int) (seen, error)) error {
	prompts := make([][]int64, l.clients*l.texts)
	for i := range prompts {
		prompts[i] = newPrompt()
	}
	all, errs := make([]seen, len(prompts)), make([]error, l.clients)
	var clients sync.WaitGroup
	start := time.Now()
	for c := range l.clients {
		clients.Go(func() {
			for i := c * l.texts; i < (c+1)*l.texts && errs[c] == nil; i++ {
				all[i], errs[c] = ask(prompts[i], l.answer)
			}
		})
	}
	clients.Wait()
	seconds := time.Since(start).Seconds()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var first, gaps []float64
	tokens := 0
	for _, s := range all {
		first, gaps, tokens = append(first, s.first...), append(gaps, s.gaps...), tokens+s.tokens
	}
	sum := 0.0
	for _, x := range first {
		sum += x
	}
	own, err := ownMemory()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%5d %12.1f %10.2f s %10.2f s %10.2f s %10d %8d\n", rows, float64(tokens)/seconds, sum/float64(len(first)), slices.Max(first), slices.Max(append(gaps, 0)), own>>20, len(prompts))
	return nil
}

// ownMemory is what this process has in memory for itself, in bytes: what is mapped from files is not counted.
func ownMemory() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		var kilobytes int64
		if _, err := fmt.Sscanf(line, "RssAnon: %d kB", &kilobytes); err == nil {
			return kilobytes << 10, nil
		}
	}
	return 0, errors.New("/proc/self/status has no RssAnon")
}
