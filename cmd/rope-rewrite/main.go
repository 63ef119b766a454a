// Command rope-rewrite gives exported ONNX models longer and better context.
//
//	rope-rewrite MODEL.onnx [-o OUT.onnx] [--scaling SPEC] [--positions SPEC]
//	rope-rewrite inspect MODEL.onnx
//	rope-rewrite validate ORIGINAL.onnx PATCHED.onnx
//	rope-rewrite ops path|version
//
// It finds the rotary attention of a model that some exporter wrote, proves
// for each site that the fused op of this project computes the same, and only
// then replaces it and changes its meaning. Exit codes: 0 done, 1 failed,
// 2 wrong usage, 3 some attention sites could not be rewritten, 4 no rotary
// attention in the model.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// Exit codes; the README lists them.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitPartial     = 3
	exitNoAttention = 4
)

// exitError carries an exit code; its text is printed unless it is empty.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// errReported ends the command with a code after everything was said.
var errReported = errors.New("")

func main() {
	rewrite.ServeIfWorker()
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run executes one command line and returns its exit code.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	code := exitFailed
	var coded *exitError
	if errors.As(err, &coded) {
		code = coded.code
		err = coded.err
	}
	if err.Error() != "" {
		fmt.Fprintf(stderr, "rope-rewrite: %v\n", err)
	}
	if code == exitUsage {
		fmt.Fprintln(stderr, "Run rope-rewrite --help for usage.")
	}
	return code
}
