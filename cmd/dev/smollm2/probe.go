package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/lm"
)

// task is what a probe, a process of its own, does with a model. A process of
// its own because its largest memory use is to be measured, and so that a
// model that crashes the runtime is reported and not the end of everything.
type task struct {
	Model   string    `json:"model"`
	Threads int       `json:"threads"`
	Greedy  int       `json:"greedy,omitempty"` // tokens to generate after each of Texts
	Texts   [][]int64 `json:"texts"`
	Logits  string    `json:"logits,omitempty"` // file for the logits of Texts[0], float32
	Places  []int64   `json:"places,omitempty"` // only those rows of the logits
	Steps   int       `json:"steps,omitempty"`  // single tokens to time after Texts[0], and nothing else
	NoArena bool      `json:"no_arena,omitempty"`
	Prompt  bool      `json:"prompt,omitempty"` // compute Texts[0] in chunks, and nothing else
	Chunk   int       `json:"chunk,omitempty"`  // tokens of a chunk; 0 is lm's own
}

// finding is what a probe reports.
type finding struct {
	Tokens  [][]int64 `json:"tokens,omitempty"` // generated
	Seconds []float64 `json:"seconds"`          // of the first pass over each text
	Peak    int64     `json:"peak"`             // largest resident memory, bytes
	Steps   *steps    `json:"steps,omitempty"`

	Loaded int64 `json:"loaded,omitempty"` // resident memory before the prompt, bytes
	Token  int64 `json:"token,omitempty"`  // bytes of a token in the cache
}

// probe runs t in a process of its own.
func probe(ctx context.Context, t task) (f finding, err error) {
	self, err := os.Executable()
	if err != nil {
		return f, err
	}
	input, err := json.Marshal(t)
	if err != nil {
		return f, err
	}
	command := exec.CommandContext(ctx, self, "probe")
	command.Stdin, command.Stderr = bytes.NewReader(input), os.Stderr
	output, err := command.Output()
	if err != nil {
		return f, fmt.Errorf("running %s: %w", t.Model, err)
	}
	return f, json.Unmarshal(output, &f)
}

func probeCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "probe",
		Short:  "Do the task on stdin (check starts this)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			var t task
			if err := json.NewDecoder(command.InOrStdin()).Decode(&t); err != nil {
				return err
			}
			f, err := t.run()
			if err != nil {
				return err
			}
			return json.NewEncoder(command.OutOrStdout()).Encode(f)
		},
	}
}

func (t task) run() (f finding, err error) {
	if err := customop.InitRuntime(""); err != nil {
		return f, err
	}
	decoder, err := lm.OpenDecoder(t.Model, lm.Options{Threads: t.Threads, NoArena: t.NoArena, Chunk: t.Chunk})
	if err != nil {
		return f, err
	}
	sequence, err := decoder.NewSequence()
	if err != nil {
		return f, err
	}
	// Nothing is closed: the process ends here.
	if t.Steps > 0 {
		s, err := t.step(sequence)
		f.Steps = &s
		return f, err
	}
	if _, err := sequence.Forward(context.Background(), lm.Row{Tokens: t.Texts[0][:min(16, len(t.Texts[0]))]}); err != nil {
		return f, err // the first run of a session is slower than the others
	}
	if t.Prompt {
		return t.prompt(sequence)
	}
	for i, text := range t.Texts {
		if err := sequence.Truncate(0); err != nil {
			return f, err
		}
		start := time.Now()
		logits, err := sequence.Forward(context.Background(), lm.Row{Tokens: text})
		if err != nil {
			return f, err
		}
		f.Seconds = append(f.Seconds, time.Since(start).Seconds())
		if i == 0 && t.Logits != "" {
			if err := t.writeLogits(logits); err != nil {
				return f, err
			}
		}
		if t.Greedy > 0 {
			var tokens []int64
			for {
				tokens = append(tokens, lm.Argmax(logits.Last()))
				if len(tokens) == t.Greedy {
					break
				}
				if logits, err = sequence.Forward(context.Background(), lm.Row{Tokens: tokens[len(tokens)-1:]}); err != nil {
					return f, err
				}
			}
			f.Tokens = append(f.Tokens, tokens)
		}
	}
	f.Peak, err = peakMemory()
	return f, err
}

func (t task) writeLogits(logits lm.Logits) error {
	return writeFloats(t.Logits, func(yield func([]float32) bool) {
		if t.Places == nil {
			yield(logits.Data)
			return
		}
		for _, place := range t.Places {
			if !yield(logits.Data[int(place)*logits.Vocabulary : int(place+1)*logits.Vocabulary]) {
				return
			}
		}
	})
}

// writeFloats writes rows in the machine's own byte order: the reader is
// this program on this machine.
func writeFloats(path string, rows func(yield func([]float32) bool)) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	for row := range rows {
		if _, err = file.Write(bytesOf(row)); err != nil {
			break
		}
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

func bytesOf(row []float32) []byte {
	if len(row) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&row[0])), 4*len(row))
}

// peakMemory is the largest resident memory that this process had, bytes;
// 0 where the system does not tell (it needs Linux's /proc).
func peakMemory() (int64, error) { return memory("VmHWM:") }

// memory is a line of /proc/self/status in bytes.
func memory(name string) (int64, error) {
	b, err := os.ReadFile("/proc/self/status")
	if os.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, name); ok {
			kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, nil
}

// consumption is what a process has taken from the system so far; zero where
// the system does not tell (it needs Linux's /proc).
type consumption struct {
	faults  int64   // pages supplied without reading a file
	seconds float64 // of processors
}

func consumed() (c consumption, err error) {
	b, err := os.ReadFile("/proc/self/stat")
	if os.IsNotExist(err) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	// The name of the program, in parentheses, may hold blanks.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 13 {
		return c, fmt.Errorf("/proc/self/stat is %q", b)
	}
	if c.faults, err = strconv.ParseInt(fields[7], 10, 64); err != nil {
		return c, err
	}
	for _, field := range fields[11:13] { // of the program and of the system for it, in hundredths
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return c, err
		}
		c.seconds += float64(ticks) / 100
	}
	return c, nil
}
