package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/internal/buildfiles"
	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/lm/tokenizer"
)

// logitsLimit is how far logits may be apart, as a fraction of their range,
// for models that are to be the same.
const logitsLimit = 5e-5

// prompts start the texts that the greedy comparison continues.
var prompts = []string{
	"<|im_start|>user\nWhy is the sky blue?<|im_end|>\n<|im_start|>assistant\n",
	"<|im_start|>user\nWrite a short poem about a lighthouse.<|im_end|>\n<|im_start|>assistant\n",
	"def fibonacci(n):\n    \"\"\"The n-th number of Fibonacci.\"\"\"\n",
	"The three most important inventions of the nineteenth century were",
	"Once upon a time, in a village by the sea, there lived",
}

// settings of a comparison.
type settings struct {
	tokens  int   // greedy ones per prompt
	length  int   // of the text whose logits are compared
	lengths []int // timed ones
	threads []int
	repeats int
	noArena bool

	// reference is the original in float64, with the weights that it has. The
	// logits of the patched model may be off from it by twice what the original's
	// are; without it, they may be off from the original's by logitsLimit.
	reference string

	work  string // folder for the logits, deleted after use
	texts string // folder of goldens.npz, whose text is used
	log   io.Writer
}

// comparison is the result of check.
type comparison struct {
	Original string    `json:"original"`
	Patched  string    `json:"patched"`
	Greedy   greedy    `json:"greedy"`
	Logits   distance  `json:"logits"`
	Errors   *accuracy `json:"errors,omitempty"` // against the reference
	Timings  []timing  `json:"timings,omitempty"`
	Verdict  string    `json:"verdict"` // same | different
}

type greedy struct {
	Prompts int   `json:"prompts"`
	Tokens  int   `json:"tokens"` // per prompt
	Equal   []int `json:"equal"`  // how many leading tokens are equal, per prompt
}

type distance struct {
	Length   int     `json:"length"`
	Max      float64 `json:"max"`      // largest difference
	Range    float64 `json:"range"`    // largest minus smallest logit of the original
	Fraction float64 `json:"fraction"` // Max / Range
}

// accuracy is how far logits are from the reference's.
type accuracy struct {
	Reference string   `json:"reference"`
	Original  distance `json:"original"`
	Patched   distance `json:"patched"`
}

// near reports whether the patched model's logits are as near as they must be.
func (c *comparison) near() bool {
	if c.Errors == nil {
		return c.Logits.ok()
	}
	return c.Errors.Patched.Max <= 2*c.Errors.Original.Max
}

type timing struct {
	Length  int        `json:"length"`
	Threads int        `json:"threads"` // 0: ONNX Runtime's default
	Seconds [2]float64 `json:"seconds"` // median: original, patched
	Ratio   float64    `json:"ratio"`   // original / patched
	Peak    [2]int64   `json:"peak"`    // bytes of resident memory: original, patched
}

func checkCommand() *cobra.Command {
	s := settings{}
	var output string
	command := &cobra.Command{
		Use:   "check ORIGINAL PATCHED",
		Short: "Compare a patched model with its original: greedy tokens, logits, prefill time and memory",
		Args:  cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, models []string) error {
			s.log = command.ErrOrStderr()
			c, err := s.compare(command.Context(), models[0], models[1])
			if err != nil {
				return err
			}
			if output != "" {
				if err := writeJSON(output, command.OutOrStdout(), c); err != nil {
					return err
				}
			}
			if output != "-" {
				c.print(command.OutOrStdout())
			}
			if c.Verdict != "same" {
				return errors.New("the models are different")
			}
			return nil
		},
	}
	flags := command.Flags()
	flags.IntVar(&s.tokens, "tokens", 64, "greedy tokens per prompt")
	flags.IntVar(&s.length, "length", 2048, "length of the text whose logits are compared")
	flags.IntSliceVar(&s.lengths, "time", []int{2048, 4096}, "lengths whose prefill is timed, its memory measured; none: --time 0")
	flags.IntSliceVar(&s.threads, "threads", []int{1, 0}, "threads to time with; 0 is ONNX Runtime's default")
	flags.IntVar(&s.repeats, "repeats", 1, "timings of each model, by turns; the median is reported")
	flags.StringVar(&s.work, "work", "build/smollm2", "folder for temporary files (0.8 GB)")
	flags.StringVar(&s.texts, "texts", "testdata/smollm2", "folder of the text's goldens.npz")
	flags.StringVar(&s.reference, "reference", "", "the original in float64; the patched model's error may be twice the original's")
	flags.StringVar(&output, "json", "", "also write the result as JSON to this file; - is stdout, in place of the table")
	return command
}

func (s settings) compare(ctx context.Context, original, patched string) (*comparison, error) {
	if err := buildfiles.SetLibraries(); err != nil {
		return nil, err
	}
	text, err := s.longText()
	if err != nil {
		return nil, err
	}
	c := &comparison{Original: original, Patched: patched, Verdict: "same"}
	if c.Greedy, err = s.greedy(ctx, original, patched); err != nil {
		return nil, err
	}
	if c.Logits, c.Errors, err = s.logits(ctx, original, patched, text(s.length)); err != nil {
		return nil, err
	}
	if slices.Min(c.Greedy.Equal) < s.tokens || !c.near() {
		c.Verdict = "different"
	}
	for _, length := range s.lengths {
		if length <= 0 {
			continue
		}
		for _, threads := range s.threads {
			t, err := s.time(ctx, original, patched, text(length), threads)
			if err != nil {
				return nil, err
			}
			c.Timings = append(c.Timings, t)
		}
	}
	return c, nil
}

// longText repeats the goldens' text up to any length.
func (s settings) longText() (func(n int) []int64, error) {
	g, err := openGoldens(s.texts)
	if err != nil {
		return nil, err
	}
	return func(n int) []int64 { return slices.Repeat(g.ids, n/len(g.ids)+1)[:n] }, g.file.Close()
}

func (s settings) greedy(ctx context.Context, original, patched string) (greedy, error) {
	g := greedy{Prompts: len(prompts), Tokens: s.tokens}
	tk, err := tokenizer.Open(filepath.Dir(original))
	if err != nil {
		return g, err
	}
	var texts [][]int64
	for _, prompt := range prompts {
		ids, err := tk.Encode(prompt)
		if err != nil {
			return g, err
		}
		texts = append(texts, ids)
	}
	fmt.Fprintf(s.log, "Continuing %d prompts by %d tokens ...\n", len(texts), s.tokens)
	var found [2]finding
	for i, model := range []string{original, patched} {
		if found[i], err = probe(ctx, task{Model: model, Greedy: s.tokens, Texts: texts}); err != nil {
			return g, err
		}
	}
	for i := range texts {
		a, b := found[0].Tokens[i], found[1].Tokens[i]
		equal := 0
		for equal < len(a) && equal < len(b) && a[equal] == b[equal] {
			equal++
		}
		g.Equal = append(g.Equal, equal)
	}
	return g, nil
}

func (s settings) logits(ctx context.Context, original, patched string, text []int64) (d distance, a *accuracy, err error) {
	fmt.Fprintf(s.log, "Comparing logits at length %d ...\n", len(text))
	if err := os.MkdirAll(s.work, 0o755); err != nil {
		return d, nil, err
	}
	folder, err := os.MkdirTemp(s.work, ".logits-*")
	if err != nil {
		return d, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	models := []string{original, patched}
	if s.reference != "" {
		models = append(models, s.reference)
	}
	var files []string
	for i, model := range models {
		files = append(files, filepath.Join(folder, fmt.Sprint(i)))
		if _, err := probe(ctx, task{Model: model, Texts: [][]int64{text}, Logits: files[i]}); err != nil {
			return d, nil, err
		}
	}
	compare := func(of, with int) (d distance) {
		if err == nil {
			d, err = compareFiles(files[of], files[with])
			d.Length = len(text)
		}
		return d
	}
	d = compare(0, 1)
	if s.reference != "" {
		a = &accuracy{Reference: s.reference, Original: compare(2, 0), Patched: compare(2, 1)}
	}
	return d, a, err
}

// compareFiles compares two files of float32 numbers as writeFloats leaves them:
// the text's logits.
func compareFiles(original, patched string) (d distance, err error) {
	var readers [2]*bufio.Reader
	for i, path := range []string{original, patched} {
		file, err := os.Open(path)
		if err != nil {
			return d, err
		}
		defer file.Close()
		readers[i] = bufio.NewReaderSize(file, 1<<20)
	}
	low, high := math.Inf(1), math.Inf(-1)
	var rows [2][]float32
	rows[0], rows[1] = make([]float32, 1<<14), make([]float32, 1<<14)
	for {
		n, err := io.ReadFull(readers[0], bytesOf(rows[0]))
		m, other := io.ReadFull(readers[1], bytesOf(rows[1]))
		if n != m {
			return d, errors.New("the models' logits have different shapes")
		}
		for i, a := range rows[0][:n/4] {
			low, high = min(low, float64(a)), max(high, float64(a))
			difference := math.Abs(float64(a) - float64(rows[1][i]))
			if math.IsNaN(difference) {
				return d, errors.New("the logits hold numbers that are not finite")
			}
			d.Max = max(d.Max, difference)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err := errors.Join(err, other); err != nil {
			return d, err
		}
	}
	d.Range = high - low
	d.Fraction = d.Max / d.Range
	return d, nil
}

func (s settings) time(ctx context.Context, original, patched string, text []int64, threads int) (timing, error) {
	fmt.Fprintf(s.log, "Timing length %d, %s ...\n", len(text), threadsText(threads))
	t := timing{Length: len(text), Threads: threads}
	var seconds [2][]float64
	for range max(s.repeats, 1) {
		for i, model := range []string{original, patched} {
			f, err := probe(ctx, task{Model: model, Threads: threads, Texts: [][]int64{text}})
			if err != nil {
				return t, err
			}
			seconds[i] = append(seconds[i], f.Seconds[0])
			t.Peak[i] = max(t.Peak[i], f.Peak)
		}
	}
	for i := range seconds {
		slices.Sort(seconds[i])
		t.Seconds[i] = seconds[i][len(seconds[i])/2]
	}
	t.Ratio = t.Seconds[0] / t.Seconds[1]
	return t, nil
}

func threadsText(n int) string {
	switch n {
	case 0:
		return "default threads"
	case 1:
		return "1 thread"
	}
	return fmt.Sprintf("%d threads", n)
}

func (c *comparison) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "original\t%s\npatched\t%s\n", c.Original, c.Patched)
	fmt.Fprintf(w, "greedy\tequal tokens of %d: %v\n", c.Greedy.Tokens, c.Greedy.Equal)
	limit := fmt.Sprintf(" (limit %.0e)", logitsLimit)
	if c.Errors != nil {
		limit = ""
	}
	fmt.Fprintf(w, "logits at %d\tlargest difference %.2g = %.2g of their range %.4g%s\n", c.Logits.Length, c.Logits.Max, c.Logits.Fraction, c.Logits.Range, limit)
	if e := c.Errors; e != nil {
		fmt.Fprintf(w, "against float64\toriginal %.2g, patched %.2g of the range: %.2f times the original's error (limit 2)\n", e.Original.Fraction, e.Patched.Fraction, e.Patched.Max/e.Original.Max)
	}
	for _, t := range c.Timings {
		fmt.Fprintf(w, "prefill %d, %s\toriginal %.2f s, patched %.2f s: %.2f × as fast; peak memory %.2f GB, %.2f GB\n", t.Length, threadsText(t.Threads),
			t.Seconds[0], t.Seconds[1], t.Ratio, float64(t.Peak[0])/1e9, float64(t.Peak[1])/1e9)
	}
	fmt.Fprintf(w, "verdict\t%s\n", c.Verdict)
	w.Flush()
}

func writeJSON(path string, stdout io.Writer, value any) error {
	b, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	b = append(b, '\n')
	if path == "-" {
		_, err = stdout.Write(b)
		return err
	}
	return configfile.Write(path, b, 0o644)
}
