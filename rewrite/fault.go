package rewrite

import (
	"fmt"
	"path"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"unicode"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// FaultError says that this package has a fault, which a model shows: where a stage would end the program with
// a panic, Rewrite and Inspect return this error. The model is as it was. Please report it.
type FaultError struct {
	Value any    // what was panicked with
	Where string // package, function and line
	Stack []byte // as debug.Stack gives it
}

func (e *FaultError) Error() string {
	what := short.Words(fmt.Sprint(e.Value))
	if strings.ContainsFunc(what, unicode.IsControl) {
		what = strconv.Quote(what)
	}
	return fmt.Sprintf("this model shows a fault of rope-rewrite (%s in %s): nothing was changed; please report it with the model", what, e.Where)
}

// recovered sets err to a FaultError when the function that defers it panics. A model's mapped file that became
// shorter is no fault of this package, and panics on.
func recovered(err *error) {
	switch p := recover().(type) {
	case nil:
	case interface {
		runtime.Error
		Addr() uintptr
	}:
		panic(p)
	default:
		*err = &FaultError{Value: p, Where: panicked(), Stack: debug.Stack()}
	}
}

// panicked is the function in which a panic began, which is recovered now.
func panicked() string {
	calls := make([]uintptr, 64)
	frames := runtime.CallersFrames(calls[:runtime.Callers(0, calls)])
	began := false
	for {
		frame, more := frames.Next()
		inRuntime := strings.HasPrefix(frame.Function, "runtime.")
		if began = began || frame.Function == "runtime.gopanic"; began && !inRuntime {
			return fmt.Sprintf("%s, line %d", path.Base(frame.Function), frame.Line)
		}
		if !more {
			return "an unknown function"
		}
	}
}
