package tokenizer

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// No text has fewer tokens than its bytes say. TestGoldens looks at awkward ones, and this at mixtures of them. Byte-level tokenizers and
// those with tokens for bytes have such a number, of those here all that models of the last years have.
func TestLeast(t *testing.T) {
	for kind := range goldens(t) {
		want := map[string]int{"smollm2": 81, "qwen": 128, "llama3": 32, "o200k": 32, "cl100k": 19, "gpt2": 32, "roberta": 32, "deepseek": 32, "gemma": 32, "llama2": 32, "mistral": 32}[kind]
		if got := open(t, kind).floor.longest; got != want {
			t.Errorf("%s: %d bytes for a token, want %d", kind, got, want)
		}
	}
	all := awkward(t)
	var texts []string
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		var b strings.Builder
		for range 1 + rng.IntN(5) {
			b.WriteString(strings.Repeat(all[rng.IntN(len(all))], 1+rng.IntN(20)))
		}
		texts = append(texts, b.String())
	}
	for _, kind := range []string{"smollm2", "qwen", "llama3", "llama2", "roberta"} {
		tok := open(t, kind)
		for _, text := range texts {
			ids, err := tok.Encode(text)
			if err != nil {
				continue
			}
			if least := tok.floor.least(validUTF8(text)); least > len(ids) {
				t.Errorf("%s: %d tokens, at least %d were said of %.100q", kind, len(ids), least, text)
			}
		}
	}
}

// A letter of NFC stands for at most four times its bytes: each letter that it is made of may have been written as the longest one that
// stands for that alone, and one that stands for several has no more bytes than these together.
func TestNFCShrinks(t *testing.T) {
	longest := map[rune]int{}
	each := func(do func(r rune, parts []rune)) {
		for r := rune(0); r < 0x30000; r++ { // no later letter is composed
			if utf8.ValidRune(r) {
				do(r, []rune(norm.NFD.String(string(r))))
			}
		}
	}
	each(func(r rune, parts []rune) {
		if len(parts) == 1 {
			longest[parts[0]] = max(longest[parts[0]], utf8.RuneLen(r))
		}
	})
	most := 0
	each(func(r rune, parts []rune) {
		all := 0
		for _, p := range parts {
			all += longest[p]
		}
		if utf8.RuneLen(r) > all {
			t.Errorf("%U has more bytes than its parts", r)
		}
		if norm.NFC.String(string(r)) == string(r) {
			most = max(most, (all+utf8.RuneLen(r)-1)/utf8.RuneLen(r))
		}
	})
	if most != 4 {
		t.Errorf("%d times its bytes", most)
	}
}

// A text that is too long by its bytes is refused before anything is done with it; one that is not is encoded whole.
func TestMost(t *testing.T) {
	tok := open(t, "llama3")
	text := strings.Repeat("a", 1<<20)
	var long *LengthError
	if _, err := tok.EncodeWith(t.Context(), text, Options{Most: 100}); !errors.As(err, &long) || long.Least <= 100 || long.Most != 100 {
		t.Errorf("%v", err)
	}
	if ids, err := tok.EncodeWith(t.Context(), "some words of a text", Options{Most: 2}); err != nil || len(ids) < 3 {
		t.Errorf("%v, %v", ids, err)
	}
	with, err := tok.EncodeWith(t.Context(), "a", Options{Special: true})
	if want, _ := tok.EncodeWithSpecial("a"); err != nil || len(want) != 2 || len(with) != len(want) {
		t.Errorf("%v, %v; want %v", with, err, want)
	}
}

// Encoding ends with the context, within words and between matches.
func TestEncodingEnds(t *testing.T) {
	tok := open(t, "llama3")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	w := newWork(ctx, 1<<20)
	defer w.end()
	w.looked = time.Time{} // as long ago as it takes to look again
	if _, err := tok.encode("a b c", nil, w); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// What is counted is work: a text that takes long on a machine that does other things is encoded, and one that takes much is not.
func TestWorkIsNoClock(t *testing.T) {
	tok := open(t, "llama3")
	for used, want := range map[time.Duration]string{0: "", time.Hour: "of a processor"} {
		w := newWork(t.Context(), 10)
		w.looked, w.used = w.looked.Add(-24*time.Hour), func() time.Duration { return used }
		_, err := tok.encode("some words of a text", nil, w)
		if w.end(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v of a processor in a day: %v", used, err)
		}
	}
	// A match that the library's clock ends while this thread did nothing is tried again.
	p, err := newRegex(`(a|aa)+$x`)
	if err != nil {
		t.Fatal(err)
	}
	p.re.MatchTimeout = 100 * time.Millisecond
	w := newWork(t.Context(), 10)
	defer w.end()
	tries := 0
	w.used = func() time.Duration {
		if tries++; tries < 3 {
			return 0
		}
		return time.Hour
	}
	if _, err := p.find(strings.Repeat("a", 200), w); err == nil || tries != 3 {
		t.Errorf("%d tries: %v", tries, err)
	}
}
