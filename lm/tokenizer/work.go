package tokenizer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// work is what the parts of a tokenizer may still take for one text. Files come from anyone: a few
// hundred bytes of one can ask for more time than there is, or double a text again and again. What
// may be taken grows with the text and not with what the file says.
type work struct {
	ctx    context.Context
	most   time.Duration        // of a processor
	used   func() time.Duration // of a processor, since the beginning
	looked time.Time            // when that was last looked at
	seen   time.Duration        // and what it was
	bytes  int                  // that a text, or all pieces of it, may have after any step
}

// lookEvery is how often it is looked at how much was used.
const lookEvery = 50 * time.Millisecond

// newWork begins to count what this thread does, and keeps the goroutine on it until end. Models' tokenizers need about a microsecond for each byte, and make less than three bytes
// of one. A processor's time is counted and not a clock's: on a busy machine a text takes longer, and no more work.
func newWork(ctx context.Context, bytes int) *work {
	runtime.LockOSThread()
	begun := processorTime()
	return &work{
		ctx:    ctx,
		most:   maxMatch + time.Duration(bytes)*4*time.Microsecond,
		used:   func() time.Duration { return processorTime() - begun },
		looked: time.Now(),
		bytes:  1<<20 + 32*bytes,
	}
}

func (w *work) end() { runtime.UnlockOSThread() }

// look ends what takes too much, or what nobody waits for any more. It is quick enough to be called for each piece.
func (w *work) look() error {
	now := time.Now()
	if now.Sub(w.looked) < lookEvery {
		return nil
	}
	w.looked = now
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if w.seen = w.used(); w.seen > w.most {
		return fmt.Errorf("the tokenizer takes more than %v of a processor for this text, so it was stopped", w.most.Round(time.Second))
	}
	return nil
}

// fits refuses a text that has become too long.
func (w *work) fits(bytes int) error {
	if bytes > w.bytes {
		return fmt.Errorf("the tokenizer makes more than %d bytes of this text, so it was stopped", w.bytes)
	}
	return nil
}

// nesting is where a part of tokenizer.json stands.
type nesting struct {
	depth int
	all   *bounds
}

// bounds are of all normalizers, pre-tokenizers, post-processors or decoders of a file together.
type bounds struct {
	parts  int
	growth float64 // how many bytes decoders make of one, at most
}

// Models have up to ten parts of a kind, and decoders that make blanks of longer texts.
const (
	maxParts  = 100
	maxGrowth = 1000
)

func outermost() nesting { return nesting{all: &bounds{growth: 1}} }

func (n nesting) inner() nesting { return nesting{n.depth + 1, n.all} }

// grow notes a decoder that makes so many bytes of one.
func (n nesting) grow(by float64) error {
	if n.all.growth *= max(by, 1); n.all.growth > maxGrowth {
		return errors.New("its decoders make too much of a token: a text could have more than a thousand times the bytes of its tokens")
	}
	return nil
}
