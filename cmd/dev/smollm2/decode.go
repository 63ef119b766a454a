package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/internal/buildfiles"
	"github.com/rope-rewrite/rope-rewrite/lm"
)

// steps is what single tokens after a text took.
type steps struct {
	Seconds []float64 `json:"seconds"`    // of each token
	CPU     float64   `json:"cpu"`        // seconds of processors per token
	Prompt  float64   `json:"prompt_cpu"` // seconds of processors for the text
	Heap    uint64    `json:"heap"`       // bytes that Go allocated per token
	Faults  int64     `json:"faults"`     // pages per token that the system had to supply, all of the process
}

func decodeCommand() *cobra.Command {
	s := settings{}
	var contexts []int
	command := &cobra.Command{
		Use:   "decode MODEL...",
		Short: "Time single tokens after texts of some lengths, and count the memory that they take",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, models []string) error {
			s.log = command.ErrOrStderr()
			return s.decode(command.Context(), command.OutOrStdout(), models, contexts)
		},
	}
	flags := command.Flags()
	flags.IntSliceVar(&contexts, "context", []int{1024, 8192}, "tokens that stand before the timed ones")
	flags.IntVar(&s.tokens, "tokens", 64, "timed tokens; the median is reported")
	flags.IntSliceVar(&s.threads, "threads", []int{0}, "threads to time with; 0 is ONNX Runtime's default")
	flags.BoolVar(&s.noArena, "no-arena", false, "take memory from the system each time, so that a heap profiler sees it")
	flags.StringVar(&s.texts, "texts", "testdata/smollm2", "folder of the text's goldens.npz")
	return command
}

func (s settings) decode(ctx context.Context, out io.Writer, models []string, contexts []int) error {
	if err := buildfiles.SetLibraries(); err != nil {
		return err
	}
	text, err := s.longText()
	if err != nil {
		return err
	}
	const row = "%-44s %7v %16s %9s %9s %10s %8s\n"
	fmt.Fprintf(out, row, "per token:", "context", "threads", "ms", "CPU ms", "Go's heap", "pages")
	for _, length := range contexts {
		for _, threads := range s.threads {
			for _, model := range models {
				fmt.Fprintf(s.log, "%s after %d tokens, %s ...\n", model, length, threadsText(threads))
				f, err := probe(ctx, task{Model: model, Threads: threads, Texts: [][]int64{text(length)}, Steps: s.tokens, NoArena: s.noArena})
				if err != nil {
					return err
				}
				slices.Sort(f.Steps.Seconds)
				fmt.Fprintf(out, row, model, length, threadsText(threads), fmt.Sprintf("%.1f", 1e3*f.Steps.Seconds[len(f.Steps.Seconds)/2]),
					fmt.Sprintf("%.1f", 1e3*f.Steps.CPU), fmt.Sprintf("%d B", f.Steps.Heap), fmt.Sprint(f.Steps.Faults))
			}
		}
	}
	return nil
}

// step fills the cache with a text and runs single tokens after it.
func (t task) step(sequence *lm.Sequence) (s steps, err error) {
	if _, err := sequence.Forward(context.Background(), lm.Row{Tokens: t.Texts[0][:min(16, len(t.Texts[0]))]}); err != nil {
		return s, err // the first run of a session is slower than the others
	}
	if err := sequence.Truncate(0); err != nil {
		return s, err
	}
	begun, err := consumed()
	if err != nil {
		return s, err
	}
	logits, err := sequence.Prefill(context.Background(), lm.Row{Tokens: t.Texts[0]})
	if err != nil {
		return s, err
	}
	next := lm.Argmax(logits.Last())
	if ended, err := consumed(); err == nil {
		s.Prompt = ended.seconds - begun.seconds
	}
	single := func() error {
		logits, err := sequence.Forward(context.Background(), lm.Row{Tokens: []int64{next}})
		if err == nil {
			next = lm.Argmax(logits.Last())
		}
		return err
	}
	for range 2 { // the first ones find memory and shapes that later ones reuse
		if err := single(); err != nil {
			return s, err
		}
	}
	fmt.Fprintf(os.Stderr, "process %d has %d tokens in its cache; single ones follow\n", os.Getpid(), sequence.Length()) // for a profiler to attach
	var before, after runtime.MemStats
	start, err := consumed()
	if err != nil {
		return s, err
	}
	runtime.ReadMemStats(&before)
	for range t.Steps {
		began := time.Now()
		if err := single(); err != nil {
			return s, err
		}
		s.Seconds = append(s.Seconds, time.Since(began).Seconds())
	}
	runtime.ReadMemStats(&after)
	end, err := consumed()
	s.Heap = (after.TotalAlloc - before.TotalAlloc) / uint64(t.Steps)
	s.Faults = (end.faults - start.faults) / int64(t.Steps)
	s.CPU = (end.seconds - start.seconds) / float64(t.Steps)
	return s, err
}
