package plan

import (
	"errors"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// AskedError says what of a request does not fit, in the words of records. Its text is Err's.
type AskedError struct {
	What  string // "scaling", "documents", …
	Given string // the method; "" of what is no method
	Where string // the layers that the method is for, where these do not fit
	Err   error
}

func (e *AskedError) Error() string { return e.Err.Error() }

func (e *AskedError) Unwrap() error { return e.Err }

// ofMethod says that a method does not fit; nil stays nil.
func ofMethod(spec rope.Spec, where string, err error) error {
	if err == nil {
		return nil
	}
	return &AskedError{spec.Axis.String(), spec.String(), where, err}
}

// Of says that what is asked for under a name does not fit; nil stays nil, and so does an error that says already
// what does not fit.
func Of(what string, err error) error {
	if known := (*AskedError)(nil); err == nil || errors.As(err, &known) {
		return err
	}
	return &AskedError{What: what, Err: err}
}
