package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/lm/chat"
	"github.com/rope-rewrite/rope-rewrite/lm/tokenizer"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

func smollm2(t *testing.T) *tokenizer.Tokenizer {
	t.Helper()
	tk, err := tokenizer.Open("../../testdata/smollm2")
	if err != nil {
		t.Fatal(err)
	}
	return tk
}

func template(t *testing.T) *chat.Template {
	t.Helper()
	c, err := chat.Open("../../testdata/smollm2")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The row is what transformers' apply_chat_template gives a message with all documents and the
// question, the template's own system message in front.
func TestPackIsAConversation(t *testing.T) {
	tk := smollm2(t)
	r, err := pack(tk, template(t), []string{"One.", "Two."}, "Which?", form{tag: "Note: "})
	if err != nil {
		t.Fatal(err)
	}
	const want = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n<|im_start|>user\nAnswer the question from these notes.\nNote: One.\nNote: Two.\nQuestion: Which?<|im_end|>\n<|im_start|>assistant\n"
	if got := tk.Decode(r.Tokens, true); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Each token belongs to the piece of text that it comes from, and the whole is
// the ChatML form of anchor, documents and question.
func TestPack(t *testing.T) {
	tk := smollm2(t)
	r, err := pack(tk, template(t), []string{"One.", "Two."}, "Which?", form{tag: "Note: "})
	if err != nil {
		t.Fatal(err)
	}
	texts := map[int64]string{}
	var order []int64
	for i, token := range r.Tokens {
		id := r.Documents[i]
		texts[id] += tk.Decode([]int64{token}, true)
		if !slices.Contains(order, id) {
			order = append(order, id)
		}
	}
	if want := []int64{0, 1, 2, -1}; !slices.Equal(order, want) || len(r.Tokens) != len(r.Documents) {
		t.Errorf("document ids in the order %v, want %v", order, want)
	}
	if texts[1] != "Note: One.\n" || texts[2] != "Note: Two.\n" || !strings.HasPrefix(texts[-1], "Question: Which?<|im_end|>") || !strings.HasSuffix(texts[0], "Answer the question from these notes.\n") {
		t.Errorf("texts %v", texts)
	}
}

// Pieces of documents take turns, each under its document's id, and nothing of
// them is lost.
func TestPackInterleaved(t *testing.T) {
	tk := smollm2(t)
	r, err := pack(tk, template(t), []string{"One two three four five.", "Six."}, "Which?", form{tag: "<note> ", chunk: 3})
	if err != nil {
		t.Fatal(err)
	}
	texts, spans := map[int64]string{}, map[int64]int{}
	for i, token := range r.Tokens {
		id := r.Documents[i]
		texts[id] += tk.Decode([]int64{token}, true)
		if i == 0 || r.Documents[i-1] != id {
			spans[id]++
		}
	}
	if texts[1] != "<note> One two three four five.\n" || texts[2] != "<note> Six.\n" {
		t.Errorf("texts %v", texts)
	}
	if spans[1] < 3 || spans[2] < 2 || spans[0] != 1 || spans[-1] != 1 {
		t.Errorf("spans %v", spans)
	}
}

// A reader sees all documents under each mask: one document alone gives the
// answer that is given without a mask, several give the answer of a model in
// which they do not see each other, and the question sees each of them.
func TestAnswer(t *testing.T) {
	library := testruntime.Require(t)
	tk := smollm2(t)
	model := copyModel(t)
	answers := func(mask string, rows ...lm.Row) (list [][]int64) {
		t.Helper()
		decoder, err := open(context.Background(), model, mask, library)
		if err != nil {
			t.Fatal(err)
		}
		defer decoder.Close()
		for _, r := range rows {
			sequence, err := decoder.NewSequence()
			if err != nil {
				t.Fatal(err)
			}
			tokens, err := answer(t.Context(), sequence, tk, r, 12)
			sequence.Close()
			if err != nil || len(tokens) == 0 {
				t.Fatal(tokens, err)
			}
			list = append(list, tokens)
		}
		return list
	}
	write := func(documents ...[]int64) lm.Row {
		var r lm.Row
		for i, tokens := range documents {
			r.Add(int64(i+1), tokens...)
		}
		r.Add(lm.Reader, 60, 61, 62)
		return r
	}
	one := write([]int64{90, 8, 77, 10})
	several := write([]int64{90, 8, 77, 10}, []int64{20, 91, 22}, []int64{33, 104, 5})
	first := write([]int64{99, 8, 70, 10}, []int64{20, 91, 22}, []int64{33, 104, 5})
	keep := answers("keep", one, several)
	intra := answers("intra-document", one, several, first)
	if !slices.Equal(keep[0], intra[0]) {
		t.Errorf("one document: %v with a mask, %v without", intra[0], keep[0])
	}
	if slices.Equal(keep[1], intra[1]) {
		t.Errorf("three documents: the mask changes nothing: %v", keep[1])
	}
	if slices.Equal(intra[1], intra[2]) {
		t.Errorf("the question does not see the first document: %v", intra[1])
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(model), ".packed-*")); err != nil || len(left) > 0 {
		t.Errorf("files left behind: %v, %v", left, err)
	}
}

// A model that was rewritten before keeps its methods under each mask.
func TestRewrittenModel(t *testing.T) {
	library := testruntime.Require(t)
	path := copyModel(t)
	patched := filepath.Join(filepath.Dir(path), "patched.onnx")
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	scaling, err := rope.ParseSpec(rope.ScalingAxis, "linear:factor=50")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rewrite.Rewrite(t.Context(), m, rewrite.Options{Evaluation: rewrite.Evaluation{Library: library}, Edits: []rope.Spec{scaling}}); err != nil {
		t.Fatal(err)
	}
	if err := m.Save(patched, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	var r lm.Row
	r.Add(1, 90, 8, 77, 10, 20, 91, 22, 33, 104, 5)
	answer := func(model, mask string) []int64 {
		decoder, err := open(t.Context(), model, mask, library)
		if err != nil {
			t.Fatal(err)
		}
		defer decoder.Close()
		sequence, err := decoder.NewSequence()
		if err != nil {
			t.Fatal(err)
		}
		defer sequence.Close()
		tokens, err := answer(t.Context(), sequence, smollm2(t), r, 12)
		if err != nil {
			t.Fatal(err)
		}
		return tokens
	}
	keep, intra := answer(patched, "keep"), answer(patched, "intra-document")
	if !slices.Equal(keep, intra) {
		t.Errorf("one document: %v with a mask, %v without", intra, keep)
	}
	if slices.Equal(intra, answer(path, "intra-document")) {
		t.Errorf("the scaling is gone: %v", intra)
	}
}

func copyModel(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../testdata/models/llama__optimum/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRunRefuses(t *testing.T) {
	there := copyModel(t)
	for want, run := range map[string]error{
		"no model nosuch.onnx": run(t.Context(), nil, "nosuch.onnx", "?", nil, 1, form{}),
		"-model":               run(t.Context(), nil, "", "?", nil, 1, form{}),
		"none.text":            run(t.Context(), nil, there, "?", []string{"none.text"}, 1, form{}),
	} {
		if run == nil || !strings.Contains(run.Error(), want) {
			t.Errorf("%v, want a word of %s", run, want)
		}
	}
}
