package lm

import (
	"errors"
	"fmt"
	"sync"
)

// Errors that a caller handles. Others are faults of the model, its folder or the runtime.
var (
	// ErrClosed is that of a model, sequence, conversation or snapshot after Close.
	ErrClosed = errors.New("it is closed")
	// ErrBusy is that of a sequence or conversation that is used by two at once: by two goroutines, or inside the
	// loop over its own Generate.
	ErrBusy = errors.New("it is in use: one sequence serves one caller at a time, give each its own")
	// ErrQueueFull is that of a model whose rows are all in use while as many callers wait as may (Options.Queue).
	ErrQueueFull = errors.New("all rows are in use and the queue is full: try again later")
	// ErrNoTemplate is that of messages to a model without a chat template.
	ErrNoTemplate = errors.New("the model's folder has no chat template; give a text in the model's format instead of messages")
)

// ContextError is a text that is longer than the model's context, or than its cache of fixed capacity.
// Nothing was computed.
type ContextError struct {
	Tokens  int  // of the whole text, or at least so many
	AtLeast bool // the text was not read: its number of bytes shows that it is too long
	Context int  // how many there may be
	Cache   bool // Context is the capacity of the cache
}

func (e *ContextError) Error() string {
	if e.Cache {
		return fmt.Sprintf("the text has %s and the cache room for %d; rewrite the original with a larger --kv fixed:capacity", e.Length(), e.Context)
	}
	return fmt.Sprintf("the text has %s and the model's context is %d; shorten it, or rewrite the model for a longer one (--scaling)", e.Length(), e.Context)
}

// Length is how many tokens the text has, in words.
func (e *ContextError) Length() string {
	if e.AtLeast {
		return fmt.Sprintf("at least %d tokens", e.Tokens)
	}
	return fmt.Sprintf("%d tokens", e.Tokens)
}

// TokenError is a token that the model does not have.
type TokenError struct {
	Token      int64
	Place      int // in the call, from 0 on
	Vocabulary int // tokens that the model has
}

func (e *TokenError) Error() string {
	return fmt.Sprintf("token %d of the call is %d, and the model has %d tokens, from 0 on", e.Place, e.Token, e.Vocabulary)
}

// gate lets users in until it is closed, and frees what they use when the last of them has left. The zero
// gate is open to any number.
type gate struct {
	most int // users at once; 0 is any number
	free func() error

	mu     sync.Mutex
	users  int
	closed bool
}

func (g *gate) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return ErrClosed
	case g.most > 0 && g.users == g.most:
		return ErrBusy
	}
	g.users++
	return nil
}

func (g *gate) leave() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.users--; g.users > 0 || !g.closed {
		return nil
	}
	return g.free()
}

// close lets nobody in any more. Those who are in may go on until they leave.
func (g *gate) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	if g.users > 0 {
		return nil
	}
	return g.free()
}

// isClosed reports whether it is; who is in asks it between two steps.
func (g *gate) isClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// errOverwritten says that a ring has given the places of tokens that are needed to later ones.
var errOverwritten = errors.New("the cache holds the last tokens of a text alone, and no longer those before; compute the text anew, or take a snapshot before it goes on")
