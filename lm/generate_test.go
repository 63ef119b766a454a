package lm_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/lm/sample"
)

// folder holds a small model with a tokenizer of one token for each of 109 bytes, the first
// ones parts of letters of several bytes. more has files that take others' place; "" removes one.
func folder(t testing.TB, more map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"model.onnx", "config.json"} {
		b, err := os.ReadFile(filepath.Join(models, "llama__optimum", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]string{}
	for _, name := range []string{"tokenizer.json", "generation_config.json"} {
		files[name] = mustRead(t, filepath.Join("../testdata/lm", name))
	}
	for name, text := range more {
		files[name] = text
	}
	for name, text := range files {
		if text == "" {
			if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func openModel(t *testing.T, more map[string]string) *lm.Model {
	t.Helper()
	library := testruntime.Require(t)
	m, err := lm.Open(folder(t, more), lm.Options{Threads: 1, OpsLibrary: library})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// collect generates a text. Every piece must be valid UTF-8.
func collect(t *testing.T, m *lm.Model, in lm.Input, o lm.GenerateOptions) (ids []int64, text string) {
	t.Helper()
	for token, err := range m.Generate(context.Background(), in, o) {
		if err != nil {
			t.Fatal(err)
		}
		if !utf8.ValidString(token.Text) {
			t.Errorf("the piece %q is not valid UTF-8", token.Text)
		}
		if token.Finish == "" || token.ID != end(m) {
			ids = append(ids, token.ID)
		}
		text += token.Text
	}
	return ids, text
}

// end is the token that ends a text, -1 of a model without one.
func end(m *lm.Model) int64 {
	if len(m.Generation.End) == 0 {
		return -1
	}
	return m.Generation.End[0]
}

// begin is a text of a model.
func begin(t *testing.T, m *lm.Model) *lm.Sequence {
	t.Helper()
	s, err := m.Decoder().NewSequence()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// The tokens are those that Forward and Argmax give one by one, and their log-probabilities
// those of the logits.
func TestGenerateGreedy(t *testing.T) {
	m := openModel(t, nil)
	prompt, err := m.Tokenizer.Encode("Once upon")
	if err != nil {
		t.Fatal(err)
	}
	var want []int64
	var logs []float64
	s := begin(t, m)
	logits, err := s.Forward(context.Background(), lm.Row{Tokens: prompt})
	for range 20 {
		if err != nil {
			t.Fatal(err)
		}
		next := lm.Argmax(logits.Last())
		all, err := sample.LogSoftmax(nil, logits.Last())
		if err != nil {
			t.Fatal(err)
		}
		want, logs = append(want, next), append(logs, all[next])
		logits, err = s.Forward(context.Background(), lm.Row{Tokens: []int64{next}})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, in := range []lm.Input{{Text: "Once upon"}, {Tokens: prompt}} {
		var got []int64
		for token, err := range m.Generate(context.Background(), in, lm.GenerateOptions{MaxTokens: 20, IgnoreEnd: true, Sample: &sample.Options{LogProbs: true}}) {
			if err != nil {
				t.Fatal(err)
			}
			if off := token.LogProb - logs[len(got)]; math.Abs(off) > 1e-5 {
				t.Errorf("token %d: ln p is %g, want %g", len(got), token.LogProb, logs[len(got)])
			}
			got = append(got, token.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// A text ends after the most tokens, at an end token, and before a stop text, however the
// stop text falls into tokens.
func TestGenerateEnds(t *testing.T) {
	m := openModel(t, nil)
	in := lm.Input{Text: "abc"}
	ids, text := collect(t, m, in, lm.GenerateOptions{MaxTokens: 30, IgnoreEnd: true})
	if len(ids) != 30 || text == "" {
		t.Fatalf("%d tokens, %q", len(ids), text)
	}
	ends := openModel(t, map[string]string{"generation_config.json": fmt.Sprintf(`{"eos_token_id": %d}`, ids[12])})
	first := slices.Index(ids, ids[12])
	if got, _ := collect(t, ends, in, lm.GenerateOptions{MaxTokens: 30}); !slices.Equal(got, ids[:first]) {
		t.Errorf("until the end token: %v, want %v", got, ids[:first])
	}
	for _, n := range []int{1, 2, 5} {
		at := len([]rune(text)) / 2
		stop := string([]rune(text)[at : at+n])
		want, _, _ := strings.Cut(text, stop)
		for _, stops := range [][]string{{stop}, {"nowhere", stop}, {stop, stop + "x"}} {
			if _, got := collect(t, m, in, lm.GenerateOptions{MaxTokens: 30, IgnoreEnd: true, Stop: stops}); got != want {
				t.Errorf("stop %q: %q, want %q", stops, got, want)
			}
		}
	}
	// What is held back for a stop text that does not come is given out at the end.
	last := text[len(text)-1:]
	if _, got := collect(t, m, in, lm.GenerateOptions{MaxTokens: 30, IgnoreEnd: true, Stop: []string{last + "\x00"}}); got != text {
		t.Errorf("%q, want %q", got, text)
	}
	limited := openModel(t, map[string]string{"generation_config.json": `{"max_new_tokens": 7}`})
	if got, _ := collect(t, limited, in, lm.GenerateOptions{IgnoreEnd: true}); len(got) != 7 {
		t.Errorf("%d tokens, the configuration says 7", len(got))
	}
}

// A text begins with what a cache holds of it, and is the same.
func TestGenerateReuses(t *testing.T) {
	m := openModel(t, nil)
	o := lm.GenerateOptions{MaxTokens: 10, IgnoreEnd: true}
	const prefix, question = "A long prefix.", " And a question"
	want, _ := collect(t, openModel(t, nil), lm.Input{Text: prefix + question}, o)
	collect(t, m, lm.Input{Text: prefix + " Another"}, o)
	before := m.Load()
	// The second text shares the prefix and " An", the third all but its last token.
	for _, cached := range []int{len(prefix) + 3, len(prefix+question) - 1} {
		var got []int64
		for token, err := range m.Generate(context.Background(), lm.Input{Text: prefix + question}, o) {
			if err != nil {
				t.Fatal(err)
			}
			if len(got) == 0 && token.Cached != cached || len(got) > 0 && token.Cached != 0 {
				t.Errorf("token %d says %d of the prompt were cached, want %d", len(got), token.Cached, cached)
			}
			got = append(got, token.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	after := m.Load()
	if got, all := after.Reused-before.Reused, uint64(2*len(prefix+question)); got != uint64(len(prefix)+3+len(prefix+question)-1) || got+after.Computed-before.Computed != all {
		t.Errorf("%d of %d tokens were in the cache, %d were computed", got, all, after.Computed-before.Computed)
	}
}

// A context that ends, and a caller who wants no more, end the generation at once.
func TestGenerateStops(t *testing.T) {
	m := openModel(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var last error
	count := 0
	for _, err := range m.Generate(ctx, lm.Input{Text: "abc"}, lm.GenerateOptions{IgnoreEnd: true}) {
		if last = err; err == nil {
			count++
		}
		if count == 3 {
			cancel()
		}
	}
	if count != 3 || !errors.Is(last, context.Canceled) {
		t.Errorf("%d tokens, then %v", count, last)
	}
	for range m.Generate(context.Background(), lm.Input{Text: "abc"}, lm.GenerateOptions{IgnoreEnd: true}) {
		break
	}
}

// Configured sampling is used, with a seed of the caller's it gives the same text.
func TestGenerateSamples(t *testing.T) {
	m := openModel(t, map[string]string{"generation_config.json": `{"do_sample": true, "temperature": 1.5, "top_k": 20, "top_p": 0.95}`})
	if got, want := m.Generation.Sample, (sample.Options{Temperature: 1.5, TopK: 20, TopP: 0.95}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	seeded := m.Generation.Sample
	seeded.Seed = 3
	o := lm.GenerateOptions{MaxTokens: 20, Sample: &seeded}
	a, _ := collect(t, m, lm.Input{Text: "abc"}, o)
	b, _ := collect(t, m, lm.Input{Text: "abc"}, o)
	c, _ := collect(t, m, lm.Input{Text: "abc"}, lm.GenerateOptions{MaxTokens: 20, Sample: &sample.Options{}})
	if !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Errorf("%v and %v with one seed, greedy %v", a, b, c)
	}
}
