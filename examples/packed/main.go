// Command packed puts one question to several documents that stand in one row,
// under three masks: each token sees everything before it (keep), the documents
// do not see each other (intra-document), and they share a beginning (anchor).
// The question is a reader: it sees all of them under each mask.
//
//	go run ./examples/packed -model build/smollm2/dynamo18/model.onnx
//	go run ./examples/packed -model MODEL.onnx -question "…" a.txt b.txt c.txt
//	go run ./examples/packed -model MODEL.onnx -tag "<article> " -interleave 16
//
// The program rewrites the model for each mask, which is also how the library is used
// from Go. The model may be an original one, or one that rope-rewrite wrote: its methods
// are unchanged.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/lm/chat"
	"github.com/rope-rewrite/rope-rewrite/lm/tokenizer"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// samples are the documents when none are given.
var samples = []string{
	"The Lindqvist lighthouse was built in 1874 on a rock two miles off the coast. Its keeper is Maria Solberg.",
	"The town library opens at nine o'clock. Its reading room has forty seats and a large blue clock.",
	"The bakery on Mill Street sells rye bread and plum cake. It belongs to Peter Novak.",
}

func main() {
	rewrite.ServeIfWorker()
	model := flag.String("model", "", "the .onnx file, original or rewritten, with tokenizer.json and the chat template beside it")
	question := flag.String("question", "What does the bakery sell?", "what is asked of the documents")
	limit := flag.Int("max-tokens", 32, "stop after this many tokens")
	var f form
	flag.StringVar(&f.tag, "tag", "Note: ", "text before each document, with the document's id, which tells the model the kind of text (a domain tag)")
	flag.IntVar(&f.chunk, "interleave", 0, "split the documents into pieces of this many tokens and interleave them; 0 leaves each document in one piece")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *model, *question, flag.Args(), *limit, f); err != nil {
		fmt.Fprintln(os.Stderr, "packed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, model, question string, files []string, limit int, f form) error {
	if model == "" {
		return errors.New("give -model FILE.onnx, a model with a key-value cache, original or rewritten")
	}
	if info, err := os.Stat(model); err != nil || info.IsDir() {
		return fmt.Errorf("there is no model %s: give the path of an .onnx file; make smollm2 fetches one", model)
	}
	documents, err := read(files)
	if err != nil {
		return err
	}
	if err := customop.InitRuntime(""); err != nil {
		return err
	}
	library, err := customop.FindLibrary(customop.Options{})
	if err != nil {
		return err
	}
	tk, err := tokenizer.Open(filepath.Dir(model))
	if err != nil {
		return err
	}
	template, err := chat.Open(filepath.Dir(model))
	if err != nil {
		return err
	}
	row, err := pack(tk, template, documents, question, f)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d documents and a question in one row of %d tokens\n", len(documents), len(row.Tokens))
	for i, text := range documents {
		fmt.Fprintf(out, "%-15s %s\n", fmt.Sprintf("document %d", i+1), beginning(text))
	}
	fmt.Fprintf(out, "%-15s %s\n", "question", question)
	for _, mask := range []string{"keep", "intra-document", "anchor"} {
		decoder, err := open(ctx, model, mask, library)
		if err != nil {
			return fmt.Errorf("%s: %w", mask, err)
		}
		sequence, err := decoder.NewSequence()
		if err != nil {
			return fmt.Errorf("%s: %w", mask, errors.Join(err, decoder.Close()))
		}
		tokens, err := answer(ctx, sequence, tk, row, limit)
		if err := errors.Join(err, sequence.Close(), decoder.Close()); err != nil {
			return fmt.Errorf("%s: %w", mask, err)
		}
		text := tk.Decode(tokens, false)
		fmt.Fprintf(out, "%-15s %s\n", mask, strings.Join(strings.Fields(text), " "))
	}
	return nil
}

// beginning is as much of a text as fits on a line.
func beginning(text string) string {
	const most = 60
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) <= most {
		return string(runes)
	}
	return string(runes[:most-1]) + "…"
}

func read(files []string) ([]string, error) {
	if len(files) == 0 {
		return samples, nil
	}
	var documents []string
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		documents = append(documents, string(b))
	}
	return documents, nil
}

// open rewrites the model for a mask and loads the result.
func open(ctx context.Context, path, mask, library string) (*lm.Decoder, error) {
	model, err := onnx.Open(path)
	if err != nil {
		return nil, err
	}
	defer model.Close()
	_, err = provenance.Read(model)
	if mask == "keep" && err == nil {
		return lm.OpenDecoder(path, lm.Options{OpsLibrary: library})
	}
	options := rewrite.Options{Evaluation: rewrite.Evaluation{Library: library}, Earlier: rewrite.Earlier{Carried: true}}
	if mask != "keep" {
		spec, err := rope.ParseSpec(rope.MaskAxis, mask)
		if err != nil {
			return nil, err
		}
		options.Edits, options.Documents.Input = []rope.Spec{spec}, rewrite.DocumentsInput
	}
	if _, err := rewrite.Rewrite(ctx, model, options); err != nil {
		return nil, err
	}
	// In the model's own folder, so that its weights need not be copied.
	patched := filepath.Join(filepath.Dir(path), fmt.Sprintf(".packed-%d.onnx", os.Getpid()))
	if err := model.Save(patched, onnx.SaveOptions{}); err != nil {
		return nil, err
	}
	decoder, err := lm.OpenDecoder(patched, lm.Options{OpsLibrary: library})
	return decoder, errors.Join(err, os.Remove(patched))
}
