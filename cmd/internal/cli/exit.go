package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// Exit codes; docs/reference.md lists them.
const (
	ExitFailed       = 1
	ExitUsage        = 2
	ExitPartial      = 3
	ExitNoAttention  = 4
	ExitDiffers      = 5
	ExitNotShown     = 6
	ExitLimited      = 7
	ExitNotConfirmed = 8
	ExitInterrupted  = 130 // what a shell reports for Ctrl-C
)

// exitError has an exit code; its text is printed unless it is empty.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// Exit ends the command with a code, after an error that is printed.
func Exit(code int, err error) error { return &exitError{code, err} }

// Usage is an error of the user's: the command ends with ExitUsage and points to its help.
func Usage(format string, args ...any) error {
	return Exit(ExitUsage, fmt.Errorf(format, args...))
}

// ErrReported ends the command with a code after everything was said.
var ErrReported = errors.New("")

// Reported ends the command with a code, 0 too, after everything was said.
func Reported(code int) error {
	if code == 0 {
		return nil
	}
	return Exit(code, ErrReported)
}

// complain says what went wrong: all of it, or a few lines.
func complain(stderr io.Writer, text string, all bool) {
	text = Quote("rope-rewrite: " + text)
	if !all {
		text = brief(text)
	}
	fmt.Fprintln(stderr, broken(text, "  "))
}

// Sentence is an error's text without the names of system calls.
func Sentence(err error) string {
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

// FailedUnless is the exit code of a model of a folder with which nothing was done, 0 where none is to be done.
func FailedUnless(none bool) int {
	if none {
		return 0
	}
	return ExitFailed
}
