package tokenizer

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A long text without a place to cut it is no trouble: nothing takes n² steps,
// which would be minutes.
func TestLongRuns(t *testing.T) {
	const size, limit = 200_000, 10 * time.Second // seen with a megabyte: 1.7 s at most
	for _, kind := range []string{"llama3", "o200k", "llama2", "clip", "t5", "albert", "bert-uncased"} {
		tok := open(t, kind)
		for _, run := range []string{"a", " ", "\n", "ab", "é", "中", "\u0301", "👍🏽", "<", " \n", "1", ".", "\xff", "\u200d"} {
			text := strings.Repeat(run, size/len(run))
			start := time.Now()
			ids, err := tok.Encode(text)
			if err != nil {
				t.Errorf("%s, %q: %v", kind, run, err)
			}
			encoded := time.Since(start)
			start = time.Now()
			s := tok.Stream(false)
			for _, id := range ids {
				s.Add(id)
			}
			s.Flush()
			if streamed := time.Since(start); encoded > limit || streamed > limit {
				t.Errorf("%s, %q: encoded in %v, streamed in %v", kind, run, encoded, streamed)
			}
		}
	}
}

// Goroutines can share a tokenizer; the race detector sees if not.
func TestConcurrently(t *testing.T) {
	texts := awkward(t)[:200]
	for _, kind := range []string{"llama3", "llama2", "t5", "bert-uncased"} {
		tok := open(t, kind)
		var all sync.WaitGroup
		results := make([]string, 4)
		for i := range results {
			all.Go(func() {
				for _, text := range texts {
					ids, err := tok.EncodeWithSpecial(text)
					if err != nil {
						t.Error(err)
					}
					results[i] += tok.Decode(ids, true)
				}
			})
		}
		all.Wait()
		for _, r := range results {
			if r != results[0] {
				t.Errorf("%s: goroutines get different texts", kind)
			}
		}
	}
}

// The speed on ordinary text: this project's documents.
func BenchmarkEncode(b *testing.B) {
	var text strings.Builder
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) == 0 {
		b.Fatal("no documents")
	}
	for i := 0; text.Len() < 1<<20; i++ {
		file, err := os.ReadFile(files[i%len(files)])
		if err != nil {
			b.Fatal(err)
		}
		text.Write(file)
	}
	for _, kind := range []string{"smollm2", "llama3", "llama2", "t5", "bert-uncased"} {
		b.Run(kind, func(b *testing.B) {
			tok := open(b, kind)
			b.SetBytes(1 << 20)
			for b.Loop() {
				if _, err := tok.Encode(text.String()[:1<<20]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
