package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

// requests are what is asked for of each model, as the command's arguments.
var requests = [][]string{
	nil,
	{"--scaling", "yarn:factor=4"},
	{"--positions", "string:shift=24,window=8"},
	{"--mask", "anchor", "--documents", "input"},
	{"--kv", "fixed:capacity=64"},
	{"--scaling", "yarn:factor=4", "--target", "onnx"},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	program := flag.String("rope-rewrite", "build/rope-rewrite", "the program whose work is recorded")
	before := flag.String("compare", "", "compare two records instead: `BEFORE`, and the one that is named behind the flags")
	wordsFile := flag.String("words", "cmd/dev/record/words.tsv", "what became of words between the two, as a `FILE`")
	flag.Parse()
	if *before != "" {
		if err := compareFiles(*before, flag.Arg(0), *wordsFile, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "record:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(ctx, *program, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, program string, models []string, w io.Writer) error {
	for _, model := range models {
		for _, request := range requests {
			entry, err := record(ctx, program, model, request)
			if err != nil {
				return fmt.Errorf("%s %v: %w", model, request, err)
			}
			if _, err := io.WriteString(w, entry); err != nil {
				return err
			}
		}
	}
	return nil
}

// compareFiles writes where two records differ, but for words.
func compareFiles(before, after, wordsFile string, w io.Writer) error {
	words, err := readWords(wordsFile)
	if err != nil {
		return err
	}
	old, err := os.ReadFile(before)
	if err != nil {
		return err
	}
	now, err := os.ReadFile(after)
	if err != nil {
		return err
	}
	differences := compare(string(old), string(now), words)
	for _, d := range differences {
		fmt.Fprintf(w, "== %s\n", d)
	}
	if len(differences) > 0 {
		return fmt.Errorf("%d runs differ", len(differences))
	}
	return nil
}
