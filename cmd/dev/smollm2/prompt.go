package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/internal/buildfiles"
	"github.com/rope-rewrite/rope-rewrite/lm"
)

func promptCommand() *cobra.Command {
	s := settings{}
	var lengths []int
	command := &cobra.Command{
		Use:   "prompt MODEL...",
		Short: "Compute prompts of some lengths in chunks, and show the memory that they take",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, models []string) error {
			s.log = command.ErrOrStderr()
			return s.prompts(command.Context(), command.OutOrStdout(), models, lengths)
		},
	}
	flags := command.Flags()
	flags.IntSliceVar(&lengths, "length", []int{4096, 32768}, "tokens of the prompt")
	flags.IntSliceVar(&s.threads, "threads", []int{0}, "threads to compute with; 0 is ONNX Runtime's default")
	flags.StringVar(&s.texts, "texts", "testdata/smollm2", "folder of the text's goldens.npz")
	return command
}

func (s settings) prompts(ctx context.Context, out io.Writer, models []string, lengths []int) error {
	if err := buildfiles.SetLibraries(); err != nil {
		return err
	}
	text, err := s.longText()
	if err != nil {
		return err
	}
	const row = "%-44s %8v %9s %10s %10s %10s\n"
	fmt.Fprintf(out, row, "a prompt:", "tokens", "seconds", "loaded MB", "cache MB", "beyond MB")
	for _, length := range lengths {
		for _, model := range models {
			for _, threads := range s.threads {
				fmt.Fprintf(s.log, "%s on %d tokens, %s ...\n", model, length, threadsText(threads))
				f, err := probe(ctx, task{Model: model, Threads: threads, Texts: [][]int64{text(length)}, Prompt: true})
				if err != nil {
					return err
				}
				cache := f.Token * int64(length)
				megabytes := func(n int64) string { return fmt.Sprint(n >> 20) }
				fmt.Fprintf(out, row, model, length, fmt.Sprintf("%.1f", f.Seconds[0]), megabytes(f.Loaded), megabytes(cache), megabytes(f.Peak-f.Loaded-cache))
			}
		}
	}
	return nil
}

// prompt computes a text in chunks.
func (t task) prompt(sequence *lm.Sequence) (f finding, err error) {
	if err := sequence.Truncate(0); err != nil {
		return f, err
	}
	f.Token = sequence.Decoder().TokenBytes()
	if f.Loaded, err = memory("VmRSS:"); err != nil {
		return f, err
	}
	start := time.Now()
	if _, err := sequence.Prefill(context.Background(), lm.Row{Tokens: t.Texts[0]}); err != nil {
		return f, err
	}
	f.Seconds = []float64{time.Since(start).Seconds()}
	f.Peak, err = peakMemory()
	return f, err
}
