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
	flag.Parse()
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
