package lm

import "sync"

// outbox hands the tokens of a text to its caller, who may take them slowly.
type outbox struct {
	mu     sync.Mutex
	tokens []Token
	err    error
	ended  bool
	ready  chan struct{} // has room for one: there is something new
}

func (o *outbox) put(t Token) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tokens = append(o.tokens, t)
	o.signal()
}

// end is called once, behind the last token.
func (o *outbox) end(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err, o.ended = err, true
	o.signal()
}

func (o *outbox) signal() {
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

// take waits for tokens, or for the end behind the last of them.
func (o *outbox) take() (tokens []Token, ended bool, err error) {
	<-o.ready
	o.mu.Lock()
	defer o.mu.Unlock()
	tokens, o.tokens = o.tokens, nil
	return tokens, o.ended, o.err
}
