package jinja

import (
	"errors"
	"fmt"
)

// failure carries an error to Parse or Render, which return it: nearly every step
// of an expression can fail, and passing errors by hand would hide what it does.
type failure struct{ err error }

// ErrRaised is wrapped by the error of a template that called raise_exception, as
// those for chats do where the roles of the messages do not alternate.
var ErrRaised = errors.New("the template refuses the conversation")

func failf(format string, args ...any) {
	panic(failure{fmt.Errorf(format, args...)})
}

func recoverTo(err *error) {
	switch r := recover().(type) {
	case nil:
	case failure:
		*err = r.err
	default:
		panic(r)
	}
}
