package tokenizer

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"slices"
	"testing"
	"unicode/utf8"
)

// golden is what Python's tokenizers does with the strings; make_goldens.py
// writes it.
type golden struct {
	Encode     packed           `json:"encode"`
	Special    packed           `json:"special"`
	Decode     packed           `json:"decode"`
	Keep       packed           `json:"keep"`
	Random     packed           `json:"random"`
	RandomKeep packed           `json:"random_keep"`
	Size       int              `json:"size"`
	IDs        map[string]int64 `json:"ids"`
	Sample     []struct {
		IDs  []int64 `json:"ids"`
		Text string  `json:"text"`
	} `json:"sample"`
}

// packed is two bytes for each result.
type packed []byte

// differ is the numbers of those that are not what was wanted.
func (p packed) differ(t *testing.T, got []any) []int {
	t.Helper()
	if len(p) != 2*len(got) || len(got) == 0 {
		t.Fatalf("%d results, and %d in the goldens", len(got), len(p)/2)
	}
	var wrong []int
	for i, g := range got {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(g); err != nil {
			t.Fatal(err)
		}
		// Python's JSON writes these two as they are.
		text := bytes.ReplaceAll(bytes.ReplaceAll(bytes.TrimSpace(b.Bytes()), []byte(`\u2028`), []byte("\u2028")), []byte(`\u2029`), []byte("\u2029"))
		sum := sha256.Sum256(text)
		if !bytes.Equal(sum[:2], p[2*i:2*i+2]) {
			wrong = append(wrong, i)
		}
	}
	return wrong
}

func unzip(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func unzipJSON(t testing.TB, name string, into any) {
	t.Helper()
	if err := json.Unmarshal(unzip(t, name), into); err != nil {
		t.Fatal(err)
	}
}

func awkward(t testing.TB) []string {
	t.Helper()
	var raw []string
	unzipJSON(t, "strings.json.gz", &raw)
	for i, s := range raw {
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		raw[i] = string(b)
	}
	return raw
}

func goldens(t testing.TB) map[string]golden {
	t.Helper()
	var f struct {
		Kinds map[string]golden `json:"kinds"`
	}
	unzipJSON(t, "goldens.json.gz", &f)
	return f.Kinds
}

func open(t testing.TB, kind string) *Tokenizer {
	t.Helper()
	if kind == "smollm2" {
		tok, err := Open("../../testdata/smollm2")
		if err != nil {
			t.Fatal(err)
		}
		return tok
	}
	tok, err := Parse(unzip(t, kind+".json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// randomLists are the ids of make_goldens.py.
func randomLists(size int) [][]int64 {
	state := 1
	var lists [][]int64
	for i := range 200 {
		ids := []int64{}
		for range i % 40 {
			state = (state*1103515245 + 12345) & 0x7FFFFFFF
			ids = append(ids, int64((state>>8)%size))
		}
		lists = append(lists, ids)
	}
	return lists
}

// Every kind of tokenizer does with a thousand awkward strings what Python's
// does, and its streams give what whole decoding gives.
func TestGoldens(t *testing.T) {
	texts := awkward(t)
	for kind, want := range goldens(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			tok := open(t, kind)
			var plain, special, decode, keep []any
			for i, text := range texts {
				ids, err := tok.Encode(text)
				if err != nil {
					t.Fatal(err)
				}
				if least := tok.floor.least(validUTF8(text)); least > len(ids) {
					t.Errorf("%q has %d tokens, and its bytes say at least %d", text, len(ids), least)
				}
				with, err := tok.EncodeWithSpecial(text)
				if err != nil {
					t.Fatal(err)
				}
				plain, special = append(plain, ids), append(special, with)
				decode, keep = append(decode, decoded(t, tok, with, false)), append(keep, decoded(t, tok, with, true))
				if at := i - 20; at >= 0 && at < len(want.Sample) && (!slices.Equal(with, want.Sample[at].IDs) || decode[i] != want.Sample[at].Text) {
					t.Errorf("%q: %v %q, want %v %q", text, with, decode[i], want.Sample[at].IDs, want.Sample[at].Text)
				}
			}
			report(t, "encode", texts, plain, want.Encode.differ(t, plain))
			report(t, "encode with special tokens", texts, special, want.Special.differ(t, special))
			report(t, "decode", texts, decode, want.Decode.differ(t, decode))
			report(t, "decode with special tokens", texts, keep, want.Keep.differ(t, keep))
			var random, randomKeep []any
			var names []string
			for _, ids := range randomLists(want.Size) {
				b, _ := json.Marshal(ids)
				names = append(names, string(b))
				random, randomKeep = append(random, decoded(t, tok, ids, false)), append(randomKeep, decoded(t, tok, ids, true))
			}
			report(t, "decode", names, random, want.Random.differ(t, random))
			report(t, "decode with special tokens", names, randomKeep, want.RandomKeep.differ(t, randomKeep))
			for token, id := range want.IDs {
				if got, ok := tok.ID(token); !ok || got != id {
					t.Errorf("ID of %q: %d, %v; want %d", token, got, ok, id)
				}
				if got, ok := tok.Token(id); !ok || got != token {
					t.Errorf("Token of %d: %q, %v; want %q", id, got, ok, token)
				}
			}
		})
	}
}

// decoded decodes whole and id by id, which is to be the same.
func decoded(t testing.TB, tok *Tokenizer, ids []int64, keepSpecial bool) string {
	t.Helper()
	whole := tok.Decode(ids, keepSpecial)
	stream := tok.Stream(keepSpecial)
	streamed := ""
	for _, id := range ids {
		part := stream.Add(id)
		if !utf8.ValidString(part) {
			t.Errorf("a stream of %v gives %q, which is not valid UTF-8", ids, part)
		}
		streamed += part
	}
	if streamed += stream.Flush(); streamed != whole {
		t.Errorf("%v: streamed %q, whole %q", ids, streamed, whole)
	}
	return whole
}

func report(t *testing.T, what string, from []string, got []any, wrong []int) {
	t.Helper()
	for _, i := range wrong[:min(len(wrong), 5)] {
		t.Errorf("%s number %d, %q: %v is not what Python has", what, i, from[i], got[i])
	}
	if len(wrong) > 0 {
		t.Errorf("%s: %d of %d are not what Python has", what, len(wrong), len(got))
	}
}

// part is one of these three, and what Python's does.
type part struct {
	Normalizer   json.RawMessage `json:"normalizer"`
	PreTokenizer json.RawMessage `json:"pre_tokenizer"`
	Decoder      json.RawMessage `json:"decoder"`
	Want         packed          `json:"want"`
}

func parts(t testing.TB) (all []part) {
	t.Helper()
	unzipJSON(t, "parts.json.gz", &all)
	return all
}

// Each normalizer, pre-tokenizer and decoder, with options that the kinds lack.
func TestParts(t *testing.T) {
	texts := awkward(t)
	for i, s := range texts {
		texts[i] = validUTF8(s)
	}
	for _, p := range parts(t) {
		t.Run(string(p.Normalizer)+string(p.PreTokenizer)+string(p.Decoder), func(t *testing.T) {
			from := texts
			var got []any
			switch {
			case p.Normalizer != nil:
				got = normalizeAll(t, p.Normalizer, texts)
			case p.PreTokenizer != nil:
				got = splitAll(t, p.PreTokenizer, texts)
			default:
				from, got = decodeAll(t, p.Decoder)
			}
			report(t, "result", from, got, p.Want.differ(t, got))
		})
	}
}

func normalizeAll(t *testing.T, part json.RawMessage, texts []string) (got []any) {
	n, err := readNormalizer(part, outermost())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		p, err := n.normalize(newPiece(text), newWork(context.Background(), len(text)))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, p.text)
	}
	return got
}

func splitAll(t *testing.T, part json.RawMessage, texts []string) (got []any) {
	pre, err := readPreTokenizer(part, outermost())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		var pieces []piece
		if text != "" {
			if pieces, err = pre.split(nil, newPiece(text), newWork(context.Background(), len(text))); err != nil {
				t.Fatal(err)
			}
		}
		words := []string{}
		for _, p := range pieces {
			words = append(words, p.text)
		}
		got = append(got, words)
	}
	return got
}

func decodeAll(t *testing.T, part json.RawMessage) (from []string, got []any) {
	decoders, err := readDecoder(part, outermost())
	if err != nil {
		t.Fatal(err)
	}
	for _, tokens := range tokenLists() {
		var out output
		s := chain(decoders, &out, false)
		for _, token := range tokens {
			s.write(token)
			s.end()
		}
		s.close()
		b, _ := json.Marshal(tokens)
		whole := out.take()
		from, got = append(from, string(b)), append(got, whole)
	}
	return from, got
}

// tokenLists are those of parts.py.
func tokenLists() (lists [][]string) {
	tokens := []string{
		"a", "aa", "baa", "▁a", "▁", "▁▁", "##x", "x", ".", "'", "n't", " do not", "</w>", "b</w>", "Ġa", "Ġ", "âĤ", "¬", "Ã", "©",
		"<0xE2>", "<0x82>", "<0xAC>", "<0xFF>", "<0x41>", "<0xZZ>", "<pad>", "|", "é", "中", "a b", "\n",
	}
	state := 7
	for i := range 300 {
		list := []string{}
		for range 1 + i%12 {
			state = (state*1103515245 + 12345) & 0x7FFFFFFF
			list = append(list, tokens[(state>>8)%len(tokens)])
		}
		lists = append(lists, list)
	}
	return lists
}

// Tokenizers of a few tokens, for what no trained one shows.
func TestTiny(t *testing.T) {
	var all []struct {
		File  json.RawMessage `json:"file"`
		Cases []struct {
			Text   string  `json:"text"`
			IDs    []int64 `json:"ids"`
			Decode string  `json:"decode"`
			Keep   string  `json:"keep"`
		} `json:"cases"`
	}
	unzipJSON(t, "tiny.json.gz", &all)
	for _, f := range all {
		tok, err := Parse(f.File)
		if err != nil {
			t.Fatalf("%s: %v", f.File, err)
		}
		for _, c := range f.Cases {
			ids, err := tok.EncodeWithSpecial(c.Text)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(ids, c.IDs) || decoded(t, tok, ids, false) != c.Decode || decoded(t, tok, ids, true) != c.Keep {
				t.Errorf("%s: %q: %v %q %q, want %v %q %q", f.File, c.Text, ids, tok.Decode(ids, false), tok.Decode(ids, true), c.IDs, c.Decode, c.Keep)
			}
		}
	}
}
