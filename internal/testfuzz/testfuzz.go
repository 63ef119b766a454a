// Package testfuzz gives the fuzz targets of this module inputs where go test does not fuzz.
//
// A target hands its seeds and its check to Run. Under go test -fuzz they are an ordinary fuzz
// target. A plain test tries the seeds, testdata/fuzz, and inputs that Run draws from the seeds:
// without the measurement of what they reach, that takes a few microseconds for each. What fails
// is written to testdata/fuzz, as go test -fuzz does.
package testfuzz

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Variables of the environment: how many times as many inputs as by itself a target draws, and which
// ones (0 and the same inputs in every run where it is not set).
const (
	timesVariable = "ROPE_FUZZ_TIMES"
	seedVariable  = "ROPE_FUZZ_SEED"
)

// Check tries an input and reports whether it was read. An input that is refused is no failure.
type Check func(t testing.TB, input []byte) (read bool)

// Run adds seeds to a target and tries check on them. A plain test also tries it on so many inputs
// that are drawn from them, the same ones in every run.
func Run(f *testing.F, seeds []string, inputs int, check Check) {
	f.Helper()
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	if named := flag.Lookup("test.fuzz"); named == nil || named.Value.String() == "" {
		try(f, newDrawer(seeds, number(f, seedVariable, 0)), inputs*number(f, timesVariable, 1), check)
	}
	f.Fuzz(func(t *testing.T, input []byte) { check(t, input) })
}

func number(f *testing.F, variable string, otherwise int) int {
	f.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		f.Fatalf("%s=%s is not a number", variable, text)
	}
	return n
}

// try draws inputs until one fails.
func try(f *testing.F, d *drawer, inputs int, check Check) {
	f.Helper()
	var input []byte
	done := false
	defer func() {
		if !done { // by a panic or by FailNow
			keep(f, input)
		}
	}()
	start, read, slowest, slow := time.Now(), 0, time.Duration(0), []byte(nil)
	for range inputs {
		input = d.draw()
		before := time.Now()
		if check(f, input) {
			read++
			d.last = input
		}
		if f.Failed() {
			f.FailNow()
		}
		if took := time.Since(before); took > slowest {
			slowest, slow = took, input
		}
	}
	done = true
	f.Logf("%d inputs drawn in %.1f s, %d of them read; the slowest took %v: %.200q", inputs, time.Since(start).Seconds(), read, slowest.Round(time.Microsecond), slow)
}

// keep writes an input that failed into the target's corpus.
func keep(f *testing.F, input []byte) {
	f.Helper()
	h := fnv.New64a()
	h.Write(input)
	path := filepath.Join("testdata", "fuzz", f.Name(), fmt.Sprintf("%016x", h.Sum64()))
	err := os.MkdirAll(filepath.Dir(path), 0o777)
	if err == nil {
		err = os.WriteFile(path, fmt.Appendf(nil, "go test fuzz v1\n[]byte(%q)\n", input), 0o666)
	}
	if err != nil {
		f.Logf("the input cannot be kept (%v): %q", err, input)
		return
	}
	f.Logf("the input is kept in %s: %.400q", path, input)
}

// maxInput is how long an input may become.
const maxInput = 1 << 16

// drawer changes seeds, and what was read of what it made of them, in a few places.
type drawer struct {
	rng   *rand.Rand
	seeds [][]byte
	words [][]byte // of the seeds: names and numbers
	last  []byte   // that was read
}

func newDrawer(seeds []string, seed int) *drawer {
	d := &drawer{rng: rand.New(rand.NewPCG(uint64(seed), 0)), words: odd}
	for _, s := range seeds {
		d.seeds = append(d.seeds, []byte(s))
		for at := 0; at < len(s); {
			end := wordEnd([]byte(s), at)
			if end > at+1 && end < at+30 {
				d.words = append(d.words, []byte(s[at:end]))
			}
			at = max(end, at+1)
		}
	}
	if len(seeds) == 0 {
		d.seeds = [][]byte{{}}
	}
	return d
}

// odd are values that programs forget about.
var odd = [][]byte{
	[]byte("-1"), []byte("0"), []byte("1e308"), []byte("1e-320"), []byte("9223372036854775808"), []byte("-9223372036854775808"), []byte("4294967296"),
	[]byte("0.1"), []byte("null"), []byte("true"), []byte("{}"), []byte("[]"), []byte(`""`), []byte("\n"), []byte("\u2028"), []byte("\x00"), []byte("é"), []byte("\xff"),
}

func wordEnd(s []byte, at int) int {
	for at < len(s) && (s[at] >= '0' && s[at] <= '9' || s[at] >= 'a' && s[at] <= 'z' || s[at] >= 'A' && s[at] <= 'Z' || s[at] == '_') {
		at++
	}
	return at
}

func (d *drawer) draw() []byte {
	if d.last == nil || d.rng.IntN(8) == 0 {
		d.last = d.seeds[d.rng.IntN(len(d.seeds))]
	}
	input := append([]byte{}, d.last...)
	for range 1 + d.rng.IntN(3) {
		input = d.change(input)
	}
	return input[:min(len(input), maxInput)]
}

// change changes an input in one place.
func (d *drawer) change(b []byte) []byte {
	if len(b) == 0 {
		return append(b, d.words[d.rng.IntN(len(d.words))]...)
	}
	at := d.rng.IntN(len(b))
	end := min(len(b), at+1+d.rng.IntN(16))
	switch d.rng.IntN(9) {
	case 0:
		b[at] ^= 1 << d.rng.IntN(8)
	case 1:
		b[at] = byte(d.rng.IntN(256))
	case 2:
		return replace(b, at, end, nil)
	case 3: // a part stands elsewhere as well
		to := d.rng.IntN(len(b))
		return replace(b, to, to, b[at:end])
	case 4: // a part of another input
		other := d.seeds[d.rng.IntN(len(d.seeds))]
		from := d.rng.IntN(len(other) + 1)
		return replace(b, at, at, other[from:min(len(other), from+1+d.rng.IntN(40))])
	case 5:
		if d.rng.IntN(20) == 0 {
			return b[:at]
		}
	case 6: // deep, or long
		if d.rng.IntN(20) == 0 {
			var part []byte
			for range d.rng.IntN(400) {
				part = append(part, b[at:end]...)
			}
			return replace(b, at, end, part)
		}
	default:
		if wordEnd(b, at) == at { // the next word
			for at < len(b) && wordEnd(b, at) == at {
				at++
			}
		}
		for at > 0 && at < len(b) && wordEnd(b, at-1) > at-1 {
			at--
		}
		return replace(b, at, wordEnd(b, at), d.words[d.rng.IntN(len(d.words))])
	}
	return b
}

// replace returns b with something else in place of b[from:to].
func replace(b []byte, from, to int, by []byte) []byte {
	out := make([]byte, 0, len(b)+len(by))
	out = append(out, b[:from]...)
	out = append(out, by...)
	return append(out, b[to:]...)
}
