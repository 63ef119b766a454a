package lm_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/lm/sample"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// fixedFolder has a model with a cache of fixed capacity.
func fixedFolder(t testing.TB, capacity int64) string {
	t.Helper()
	return rewrittenFolder(t, rewrite.Options{Cache: rewrite.Cache{Capacity: capacity}})
}

// rewrittenFolder has a model that the rewriter has changed.
func rewrittenFolder(t testing.TB, options rewrite.Options) string {
	t.Helper()
	library := testruntime.Require(t)
	dir := t.TempDir()
	b, err := os.ReadFile(patched(t, filepath.Join(models, "llama__optimum", "model.onnx"), library, options))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"model.onnx": b, "tokenizer.json": read(t, "../testdata/lm/tokenizer.json"), "config.json": read(t, filepath.Join(models, "llama__optimum", "config.json")),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func openRows(t testing.TB, dir string, options lm.Options) *lm.Model {
	t.Helper()
	options.Threads, options.OpsLibrary = 1, testruntime.Require(t)
	m, err := lm.Open(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// ways are how many texts can be generated at the same time.
func ways(t testing.TB) map[string]*lm.Model {
	growing := folder(t, nil)
	return map[string]*lm.Model{
		"one cache each":         openRows(t, growing, lm.Options{}),
		"three caches":           openRows(t, growing, lm.Options{Rows: 3, Queue: 1000}),
		"fixed, one cache each":  openRows(t, fixedFolder(t, 64), lm.Options{}),
		"fixed, eight rows":      openRows(t, fixedFolder(t, 64), lm.Options{Rows: 8, Queue: 1000, Chunk: 5}),
		"fixed, two rows, whole": openRows(t, fixedFolder(t, 64), lm.Options{Rows: 2, Queue: 1000}),
	}
}

// Texts that are generated at the same time are those that are generated alone, whoever joins and leaves.
func TestManyTexts(t *testing.T) {
	manyTexts(t, openRows(t, folder(t, nil), lm.Options{}), ways(t))
}

// So are texts in rings, of which rows that begin alike share what both still have.
func TestManyRings(t *testing.T) {
	edits := maskOf(t, "first-keys:window=9,count=2,positions=cache")
	ring := rewrittenFolder(t, rewrite.Options{Edits: edits, Cache: rewrite.Cache{Capacity: 64, Ring: true}})
	manyTexts(t, openRows(t, rewrittenFolder(t, rewrite.Options{Edits: edits}), lm.Options{}), map[string]*lm.Model{
		"one ring each":    openRows(t, ring, lm.Options{}),
		"eight rows":       openRows(t, ring, lm.Options{Rows: 8, Queue: 1000, Chunk: 5}),
		"two rows, chunks": openRows(t, ring, lm.Options{Rows: 2, Queue: 1000, Chunk: 30}),
	})
}

// manyTexts generates texts alone, and at the same time in each way.
func manyTexts(t *testing.T, alone *lm.Model, ways map[string]*lm.Model) {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 7))
	type text struct {
		prompt []int64
		most   int
		leave  int // after so many tokens; 0 is never
		want   []int64
		near   []bool // the two likeliest tokens of a step are nearly as likely
	}
	const shared = 9
	prefix := make([]int64, shared)
	for i := range prefix {
		prefix[i] = rng.Int64N(100)
	}
	var texts []*text
	for i := range 64 {
		x := &text{most: 1 + rng.IntN(20)}
		if i%3 == 0 { // some begin in the same way
			x.prompt = slices.Clone(prefix[:rng.IntN(shared)])
		}
		for range 1 + rng.IntN(30) {
			x.prompt = append(x.prompt, rng.Int64N(100))
		}
		if i%5 == 0 {
			x.leave = 1 + rng.IntN(x.most)
		}
		for token, err := range alone.Generate(context.Background(), lm.Input{Tokens: x.prompt}, lm.GenerateOptions{MaxTokens: x.most, IgnoreEnd: true, Sample: &sample.Options{Top: 2}}) {
			if err != nil {
				t.Fatal(err)
			}
			x.want = append(x.want, token.ID)
			x.near = append(x.near, token.Top[0].LogProb-token.Top[1].LogProb < 1e-4)
		}
		texts = append(texts, x)
	}
	for name, m := range ways {
		t.Run(name, func(t *testing.T) {
			var all sync.WaitGroup
			for i, x := range texts {
				all.Go(func() {
					time.Sleep(time.Duration(i%7) * time.Millisecond)
					at := 0
					for token, err := range m.Generate(context.Background(), lm.Input{Tokens: x.prompt}, lm.GenerateOptions{MaxTokens: x.most, IgnoreEnd: true}) {
						if err != nil {
							t.Errorf("text %d: %v", i, err)
							return
						}
						if token.ID != x.want[at] {
							if !x.near[at] {
								t.Errorf("text %d: token %d is %d, alone it is %d", i, at, token.ID, x.want[at])
							}
							return
						}
						if at++; at == x.leave {
							return
						}
					}
					if x.leave == 0 && at != len(x.want) {
						t.Errorf("text %d: %d tokens, alone %d", i, at, len(x.want))
					}
				})
			}
			all.Wait()
			if l := m.Load(); l.Running != 0 || l.Waiting != 0 {
				// A row is free a moment after its caller has left.
				deadline := time.Now().Add(5 * time.Second)
				for l.Running+l.Waiting > 0 && time.Now().Before(deadline) {
					time.Sleep(time.Millisecond)
					l = m.Load()
				}
				if l.Running != 0 || l.Waiting != 0 {
					t.Errorf("texts are left: %+v", l)
				}
			}
		})
	}
}

// A thousand texts join and leave, many of them before they have ended.
func TestJoinsAndLeaves(t *testing.T) {
	testsample.All(t, "TestManyTexts has 64 of the 1,000 joins")
	m := openRows(t, fixedFolder(t, 64), lm.Options{Rows: 8, Queue: 2000, Chunk: 4})
	var all sync.WaitGroup
	errs := make(chan error, 1000)
	for i := range 1000 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			prompt := make([]int64, 1+rng.IntN(40))
			for k := range prompt {
				prompt[k] = rng.Int64N(100)
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			leave, most := rng.IntN(12), 1+rng.IntN(12)
			if i%4 == 0 {
				time.AfterFunc(time.Duration(rng.IntN(2000))*time.Millisecond, cancel)
			}
			n := 0
			for _, err := range m.Generate(ctx, lm.Input{Tokens: prompt}, lm.GenerateOptions{MaxTokens: most, IgnoreEnd: true}) {
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						errs <- err
					}
					return
				}
				if n++; i%3 == 0 && n == leave {
					return
				}
			}
			if n != most && ctx.Err() == nil {
				errs <- fmt.Errorf("text %d has %d of %d tokens", i, n, most)
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
}

// A row of several has the logits that it has alone.
func TestRowsEqualAlone(t *testing.T) {
	dir := fixedFolder(t, 64)
	alone, rows := openRows(t, dir, lm.Options{}), openRows(t, dir, lm.Options{Rows: 4, Chunk: 6})
	type seen [][]float64
	run := func(m *lm.Model, prompt []int64) (s seen) {
		for token, err := range m.Generate(context.Background(), lm.Input{Tokens: prompt}, lm.GenerateOptions{MaxTokens: 12, IgnoreEnd: true, Sample: &sample.Options{Top: 128}}) {
			if err != nil {
				t.Error(err)
				return nil
			}
			all := make([]float64, 128)
			for _, l := range token.Top {
				all[l.Token] = l.LogProb
			}
			s = append(s, all)
		}
		return s
	}
	prompts := [][]int64{{1, 2, 3}, {4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, {20}, {30, 31, 32, 33, 34}}
	var want, got [4]seen
	var all sync.WaitGroup
	for i, p := range prompts {
		want[i] = run(alone, p)
		all.Go(func() { got[i] = run(rows, p) })
	}
	all.Wait()
	for i := range prompts {
		for step := range want[i] {
			least, most := slices.Min(want[i][step]), slices.Max(want[i][step])
			for k, x := range want[i][step] {
				if off := math.Abs(got[i][step][k] - x); !(off <= 1e-4*(most-least)) {
					t.Fatalf("text %d, step %d: token %d is off by %g of a range of %g", i, step, k, off, most-least)
				}
			}
		}
	}
}

// Misuse is an error and not a crash: two users of one sequence, a call inside a generation, and after Close.
func TestMisuse(t *testing.T) {
	for name, m := range ways(t) {
		t.Run(name, func(t *testing.T) {
			s, err := m.Decoder().NewSequence()
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			var busy, done int
			var mu sync.Mutex
			for range 8 {
				all.Go(func() {
					for range 5 {
						_, err := s.Forward(context.Background(), lm.Row{Tokens: []int64{1}})
						mu.Lock()
						switch {
						case err == nil:
							done++
						case errors.Is(err, lm.ErrBusy):
							busy++
						default:
							t.Error(err)
						}
						mu.Unlock()
					}
				})
			}
			all.Wait()
			if s.Length() != done || done+busy != 40 {
				t.Errorf("%d calls, %d refused, and the sequence has %d tokens", done, busy, s.Length())
			}
			var last error
			n := 0
			for _, err := range m.Generate(context.Background(), lm.Input{Text: "abc"}, lm.GenerateOptions{IgnoreEnd: true, MaxTokens: 40}) {
				if last = err; err != nil {
					break
				}
				if n++; n == 3 {
					if err := m.Close(); err != nil {
						t.Error(err)
					}
				}
			}
			if !errors.Is(last, lm.ErrClosed) && last != nil || n < 3 || last == nil && n < 40 && !strings.Contains(name, "rows") {
				t.Errorf("closed inside a generation: %v after %d tokens", last, n)
			}
			if _, err := s.Forward(context.Background(), lm.Row{Tokens: []int64{1}}); !errors.Is(err, lm.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
			for _, err := range m.Generate(context.Background(), lm.Input{Text: "abc"}, lm.GenerateOptions{}) {
				if !errors.Is(err, lm.ErrClosed) {
					t.Errorf("after Close: %v", err)
				}
			}
			if _, err := m.Decoder().NewSequence(); !errors.Is(err, lm.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
			if err := errors.Join(s.Close(), s.Close(), m.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A full queue is an error at once, and a fault of one caller's function ends only its own text.
func TestQueue(t *testing.T) {
	m := openRows(t, fixedFolder(t, 2048), lm.Options{Rows: 2, Queue: 1, Context: -1})
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for _, err := range m.Generate(ctx, lm.Input{Text: "abc"}, lm.GenerateOptions{IgnoreEnd: true, MaxTokens: 2000, Mask: func([]int64, []float32) {
				time.Sleep(2 * time.Millisecond)
			}}) {
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
		})
	}
	for m.Load().Running < 2 {
		time.Sleep(time.Millisecond)
	}
	waits := make(chan error, 1)
	all.Go(func() {
		var last error
		for _, err := range m.Generate(context.Background(), lm.Input{Text: "xyz"}, lm.GenerateOptions{Mask: func([]int64, []float32) { panic("a fault") }}) {
			last = err
		}
		waits <- last
	})
	for m.Load().Waiting == 0 {
		time.Sleep(time.Millisecond)
	}
	for _, err := range m.Generate(context.Background(), lm.Input{Text: "one too many"}, lm.GenerateOptions{}) {
		if !errors.Is(err, lm.ErrQueueFull) {
			t.Errorf("one too many: %v", err)
		}
	}
	leave()
	all.Wait()
	if err := <-waits; err == nil || !strings.Contains(err.Error(), "a fault") {
		t.Errorf("a function that panics: %v", err)
	}
	if ids, _ := collect(t, m, lm.Input{Text: "abc"}, lm.GenerateOptions{MaxTokens: 5, IgnoreEnd: true}); len(ids) != 5 {
		t.Errorf("after the fault: %v", ids)
	}
}

// A prompt that texts share is computed once, also when they come at the same time.
func TestSharedPrompt(t *testing.T) {
	m := openRows(t, fixedFolder(t, 2048), lm.Options{Rows: 4, Chunk: 16, Context: -1})
	const shared, own = 512, 8
	var all sync.WaitGroup
	for i := range 4 {
		prompt := make([]int64, shared+own)
		for k := range prompt {
			prompt[k] = int64(k) % 100
		}
		prompt[shared] = int64(100 + i)
		all.Go(func() {
			for _, err := range m.Generate(context.Background(), lm.Input{Tokens: prompt}, lm.GenerateOptions{MaxTokens: 2}) {
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	// Each may have computed a piece of its own before the first was ahead.
	if got, most := m.Load().Computed, uint64(shared+4*own+3*16); got > most {
		t.Errorf("%d tokens were computed, %d would do", got, most)
	}
}

// Two clients wait for one another no longer than a piece of a prompt takes.
func TestShortBesideLong(t *testing.T) {
	m := openRows(t, fixedFolder(t, 2048), lm.Options{Rows: 4, Chunk: 16, Context: -1})
	long := make([]int64, 2000)
	for i := range long {
		long[i] = int64(i*i) % 100
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() {
		for range m.Generate(ctx, lm.Input{Tokens: long}, lm.GenerateOptions{MaxTokens: 1}) {
		}
	})
	for m.Load().Computed < 64 {
		time.Sleep(time.Millisecond)
	}
	least := uint64(math.MaxUint64)
	for i := range int64(8) { // the machine may let this goroutine wait between two lines
		before := m.Load().Computed
		for _, err := range m.Generate(context.Background(), lm.Input{Tokens: []int64{100 + i, 2, 3}}, lm.GenerateOptions{MaxTokens: 1}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		least = min(least, m.Load().Computed-before)
	}
	if least > 3+3*16 { // the piece that ran, its own, and one behind it
		t.Errorf("%d tokens were computed before the first token of a short text", least)
	}
	cancel()
	all.Wait()
}

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
