package tokenizer

import (
	"errors"
	"fmt"
	"time"
)

// work is what the parts of a tokenizer may still take for one text. Files come from anyone: a few
// hundred bytes of one can ask for more time than there is, or double a text again and again. What
// may be taken grows with the text and not with what the file says.
type work struct {
	regex time.Duration // for all regular expressions together
	bytes int           // that a text, or all pieces of it, may have after any step
}

// Those of models need about a microsecond for each byte, and make less than three bytes of one.
func newWork(bytes int) *work {
	return &work{
		regex: maxRegexTime + time.Duration(bytes)*4*time.Microsecond,
		bytes: 1<<20 + 32*bytes,
	}
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
