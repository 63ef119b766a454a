package jinja

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// failure carries an error to Parse or Render, which return it: nearly every step
// of an expression can fail, and passing errors by hand would hide what it does.
type failure struct{ err error }

// ErrRaised is wrapped by the error of a template that called raise_exception, as
// those for chats do where the roles of the messages do not alternate.
var ErrRaised = errors.New("the template refuses the conversation")

func failf(format string, args ...any) {
	for i, a := range args {
		if text, ok := a.(string); ok {
			args[i] = shown(text)
		}
	}
	panic(failure{fmt.Errorf(format, args...)})
}

// shown is a text of the template as errors have it: on one line, and not without end.
func shown(text string) string {
	const most = 200
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
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
