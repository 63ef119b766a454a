package tokenizer

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// repeated is a Sequence of a part, so many times.
func repeated(list, part string, times int) string {
	return `{"type":"Sequence","` + list + `":[` + strings.TrimSuffix(strings.Repeat(part+",", times), ",") + `]}`
}

// Parts that double a text again and again end with an error, as long as it is short.
func TestTextsDoNotExplode(t *testing.T) {
	double := `{"type":"Replace","pattern":{"String":"é"},"content":"éé"}`
	for name, parts := range map[string]string{
		"replace":         `"normalizer":` + repeated("normalizers", double, 60),
		"by letters":      `"normalizer":` + repeated("normalizers", `{"type":"Replace","pattern":{"Regex":"."},"content":"éé"}`, 60),
		"bytes":           `"normalizer":` + repeated("normalizers", `{"type":"ByteLevel"}`, 60),
		"pieces of bytes": `"pre_tokenizer":` + repeated("pretokenizers", `{"type":"ByteLevel","use_regex":false}`, 60),
		"one":             `"normalizer":{"type":"Replace","pattern":{"String":"é"},"content":"` + strings.Repeat("x", 1<<19) + `"}`,
		"between tokens":  `"normalizer":{"type":"Prepend","prepend":"` + strings.Repeat("x", 1<<18) + `"},"added_tokens":[{"id":2,"content":"|"}]`,
	} {
		tok, err := Parse([]byte(with(parts)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := tok.Encode("é"); name != "one" && name != "between tokens" && err == nil {
			t.Errorf("%s: a letter was encoded", name)
		}
		if _, err := tok.Encode(strings.Repeat("é|", 50)); err == nil || !strings.Contains(err.Error(), "so it was stopped") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, parts := range map[string]string{
		"more than 100 normalizers":   `"normalizer":` + repeated("normalizers", `{"type":"NFC"}`, 101),
		"more than 100 pre-tokenizer": `"pre_tokenizer":` + repeated("pretokenizers", repeated("pretokenizers", `{"type":"Whitespace"}`, 10), 10),
		"too much of a token":         `"decoder":` + repeated("decoders", double, 60),
		"when normalized":             `"normalizer":{"type":"Prepend","prepend":"` + strings.Repeat("x", 2000) + `"},"added_tokens":[{"id":2,"content":"y","normalized":true}]`,
	} {
		if _, err := Parse([]byte(with(parts))); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v; an error with %q was expected", err, name)
		}
	}
}

// Many regular expressions that each take a moment end together with an error: the time is that of a text.
func TestManySlowMatches(t *testing.T) {
	slow := `{"type":"Split","pattern":{"Regex":"(a|aa)+b"},"behavior":"Isolated","invert":false}`
	words := strings.Repeat(strings.Repeat("a", 20)+" ", 2000)
	for name, part := range map[string]string{
		"each in a piece": `{"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},` + slow + `]}`,
		"in one text":     strings.Replace(slow, "+b", "+b| ", 1),
	} {
		p, err := readPreTokenizer(json.RawMessage(part), outermost())
		if err != nil {
			t.Fatal(err)
		}
		w := newWork(context.Background(), len(words))
		w.most = 20 * time.Millisecond
		_, err = p.split(nil, newPiece(words), w)
		if err == nil || !strings.Contains(err.Error(), "of a processor") || strings.Contains(err.Error(), "aaa") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
