// Command rope-rewrite gives exported ONNX models longer and better context.
//
//	rope-rewrite MODEL.onnx [-o OUT.onnx] [--scaling SPEC] [--mask SPEC] ...
//	rope-rewrite inspect MODEL.onnx
//	rope-rewrite validate ORIGINAL.onnx PATCHED.onnx
//	rope-rewrite ops path|version
//	rope-rewrite doctor
//
// It finds the rotary attention of a model that some exporter wrote, proves
// for each site that the fused op of this project computes the same, and only
// then replaces it and changes its meaning. Exit codes: 0 done, 1 failed,
// 2 wrong usage, 3 some attention sites could not be rewritten, 4 no rotary
// attention in the model, 5 audit or diff saw a difference, 6 validate could not
// see whether a model has its methods; 130 after an interrupt.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	_ "github.com/rope-rewrite/rope-rewrite/customop/bundled" // release builds carry the op library
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// Exit codes; the README lists them.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitPartial     = 3
	exitNoAttention = 4
	exitDiffers     = 5
	exitNotShown    = 6
	exitInterrupted = 130 // what a shell reports for Ctrl-C
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
	debug.SetGCPercent(50) // what is measured is large and soon of no use; 25 saves little more and takes a second
	// Half of a small heap is little, and collecting it all the time took a third of the processor time
	// of a small model. This counts as heap and takes no memory, for nothing touches it.
	unused := make([]byte, 32<<20)
	defer runtime.KeepAlive(unused)
	os.Exit(interruptible(func(ctx context.Context) int { return run(ctx, os.Args[1:], os.Stdout, os.Stderr) }))
}

// patience is how long the work may take to end by itself after an interrupt.
// Writing ends at once and removes what it began; what only computes need not.
const patience = 500 * time.Millisecond

// interruptible runs f. Ctrl-C or SIGTERM cancels its context, and ends the
// process if that has not ended f soon; a second one does so wherever it is.
func interruptible(f func(context.Context) int) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	over := context.AfterFunc(ctx, func() {
		stop()
		time.Sleep(patience)
		time.AfterFunc(patience/5, func() { os.Exit(exitInterrupted) }) // nobody may be reading what is said
		complain(os.Stderr, "interrupted", false)
		os.Exit(exitInterrupted)
	})
	defer over()
	return f(ctx)
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(plain{stdout})
	root.SetErr(plain{stderr})
	err := guard(func() error { return root.ExecuteContext(ctx) })
	if err == nil {
		return 0
	}
	if ctx.Err() != nil {
		complain(stderr, "interrupted; no model was written", false)
		return exitInterrupted
	}
	code := exitFailed
	if coded := (*exitError)(nil); errors.As(err, &coded) {
		code = coded.code
	}
	// A method that does not fit the model is wrong usage too, but then the
	// sentence says what to give, not the help.
	unfit := (*rewrite.EditError)(nil)
	if errors.As(err, &unfit) {
		code = exitUsage
	}
	if err.Error() != "" {
		json, _ := root.PersistentFlags().GetBool("json")
		complain(stderr, sentence(err), json)
	}
	switch {
	case len(args) == 0:
		fmt.Fprintf(stderr, "\n%s\n", firstScreen)
	case code == exitUsage && unfit == nil:
		fmt.Fprintln(stderr, "Run rope-rewrite --help for usage.")
	}
	return code
}

// complain says what went wrong: all of it, or a few lines.
func complain(stderr io.Writer, text string, all bool) {
	text = quote("rope-rewrite: " + text)
	if !all {
		text = brief(text)
	}
	fmt.Fprintln(stderr, broken(text, "  "))
}

// sentence is an error's text without the names of system calls.
func sentence(err error) string {
	text := err.Error()
	failed := (*fs.PathError)(nil)
	if !errors.As(err, &failed) {
		return text
	}
	reason := failed.Err.Error()
	if errors.Is(failed, fs.ErrNotExist) {
		reason = "no such file" + nearFile(failed.Path)
	}
	return strings.Replace(text, failed.Error(), failed.Path+": "+reason, 1)
}
