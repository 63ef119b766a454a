package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// patience is how long the work may take to end by itself after an interrupt.
// Writing stops at once and removes its unfinished file; computing may take longer.
const patience = 500 * time.Millisecond

// Interruptible runs f. Ctrl-C or SIGTERM cancels its context, and ends the
// process if that has not ended f soon; a second one does so wherever it is.
func Interruptible(f func(context.Context) int) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	over := context.AfterFunc(ctx, func() {
		stop()
		time.Sleep(patience)
		time.AfterFunc(patience/5, func() { os.Exit(ExitInterrupted) }) // nobody may be reading what is said
		complain(os.Stderr, "interrupted", false)
		os.Exit(ExitInterrupted)
	})
	defer over()
	return f(ctx)
}

// Execute runs one command line and returns its exit code.
func Execute(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	root.SetArgs(args)
	out := &plain{out: stdout}
	root.SetOut(out)
	root.SetErr(&plain{out: stderr})
	err := guard(func() error { return root.ExecuteContext(ctx) })
	if err == nil {
		return 0
	}
	wantsJSON := asksForJSON(root, args)
	fail := func(code int, sentence string) int {
		complain(stderr, sentence, wantsJSON)
		if wantsJSON && !out.used {
			if err := PrintJSON(out, FailureReport{Failure{sentence, code}}); err != nil {
				complain(stderr, Sentence(err), true)
			}
		}
		return code
	}
	if ctx.Err() != nil {
		return fail(ExitInterrupted, "interrupted; no model was written")
	}
	code := ExitFailed
	if coded := (*exitError)(nil); errors.As(err, &coded) {
		code = coded.code
	}
	// A method that does not fit the model is wrong usage too, but then the
	// sentence says what to give, not the help.
	unfit := (*rewrite.EditError)(nil)
	if errors.As(err, &unfit) {
		code = ExitUsage
	}
	if err.Error() != "" {
		fail(code, Sentence(err))
	}
	switch {
	case len(args) == 0:
		fmt.Fprintf(stderr, "\n%s\n", firstScreen)
	case code == ExitUsage && unfit == nil:
		fmt.Fprintln(stderr, "Run rope-rewrite --help for usage.")
	}
	return code
}

// asksForJSON reports whether a command line has --json, also behind a flag that is wrong.
func asksForJSON(root *cobra.Command, args []string) bool {
	if given, err := root.PersistentFlags().GetBool("json"); err == nil && given {
		return true
	}
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.ContainsFunc(args, func(a string) bool { return strings.EqualFold(a, "--json") })
}

// errCutShort stands for the fault of reading a mapped file that has become
// shorter.
var errCutShort = errors.New("the model's file became shorter while it was read, so nothing was written; wait until it is complete and start again")

// guard runs f, which reads mapped files, and returns errCutShort where it
// would otherwise end the process with a bus error.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch p := recover().(type) {
		case nil:
		case interface {
			runtime.Error
			Addr() uintptr
		}:
			err = errCutShort
		default:
			panic(p)
		}
	}()
	return f()
}
