package lm

import (
	"context"
	"errors"
	"sync"
)

// pool gives each text a sequence of its own. Those of texts that have ended are kept for others that begin
// in the same way, as many as there may be at the same time, and one where there may be any number.
type pool struct {
	decoder *Decoder
	rows    int           // texts at the same time; 0 is any number
	free    chan struct{} // has a token for each text that may begin; nil if that is any number
	queue   int           // callers that may wait

	mu     sync.Mutex
	closed bool
	idle   []*Sequence // the one that was used last comes last
	now    Load
}

func newPool(d *Decoder, rows, queue int) *pool {
	p := &pool{decoder: d, rows: rows, queue: queue}
	if rows > 0 {
		p.free = make(chan struct{}, rows)
		for range rows {
			p.free <- struct{}{}
		}
	}
	return p
}

func (p *pool) load() Load {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.now
	l.Rows = p.rows
	return l
}

// enter waits until one more text may begin.
func (p *pool) enter(ctx context.Context) error {
	if p.free == nil {
		return ctx.Err()
	}
	select {
	case <-p.free:
		return nil
	default:
	}
	p.mu.Lock()
	full := p.now.Waiting >= p.queue
	if !full {
		p.now.Waiting++
	}
	p.mu.Unlock()
	if full {
		return ErrQueueFull
	}
	defer func() {
		p.mu.Lock()
		p.now.Waiting--
		p.mu.Unlock()
	}()
	select {
	case <-p.free:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take is the idle sequence that holds most of a row, or a new one.
func (p *pool) take(row Row) (*Sequence, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	p.now.Running++
	best, at := -1, 0
	for i, s := range p.idle {
		if n := s.shared(row); n >= best { // of equal ones the one that was used last
			best, at = n, i
		}
	}
	if best >= 0 {
		s := p.idle[at]
		p.idle = append(p.idle[:at], p.idle[at+1:]...)
		return s, nil
	}
	s, err := p.decoder.NewSequence()
	if err != nil {
		p.now.Running--
	}
	return s, err
}

// put keeps a sequence for the next text, or closes it.
func (p *pool) put(s *Sequence) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Running--
	if p.closed {
		return s.Close()
	}
	p.idle = append(p.idle, s)
	if len(p.idle) <= max(1, p.rows) {
		return nil
	}
	oldest := p.idle[0]
	p.idle = p.idle[1:]
	return oldest.Close()
}

func (p *pool) generate(ctx context.Context, row Row, choose chooseToken, yield func(Token) bool) (err error) {
	if err := p.enter(ctx); err != nil {
		return err
	}
	if p.free != nil {
		defer func() { p.free <- struct{}{} }()
	}
	s, err := p.take(row)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.put(s)) }()
	return p.count(ctx, s, row, choose, yield)
}

// count generates in a sequence, and notes what the text costs.
func (p *pool) count(ctx context.Context, s *Sequence, row Row, choose chooseToken, yield func(Token) bool) error {
	reused := s.shared(row)
	first := true
	err := s.generate(ctx, row, func(logits []float32) (Token, error) {
		t, err := choose(logits)
		if first {
			t.Cached, first = reused, false
		}
		return t, err
	}, yield)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Reused += uint64(reused)
	p.now.Computed += uint64(max(0, min(len(s.tokens), len(row.Tokens))-reused))
	return err
}

func (p *pool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var errs []error
	for _, s := range p.idle {
		errs = append(errs, s.Close())
	}
	p.idle = nil
	return errors.Join(errs...)
}

// generate computes a row and goes on with the tokens that are chosen. The sequence then holds the row and
// all of these but the last.
func (s *Sequence) generate(ctx context.Context, row Row, choose chooseToken, yield func(Token) bool) (err error) {
	if err := s.gate.enter(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.gate.leave()) }()
	logits, err := s.compute(ctx, row)
	if err != nil {
		return err
	}
	document := row.Documents[len(row.Documents)-1] // of what is generated
	for {
		t, err := choose(logits.Last())
		if err != nil || !yield(t) || t.Finish != "" {
			return err
		}
		if logits, err = s.forward(ctx, Row{[]int64{t.ID}, []int64{document}}); err != nil {
			return err
		}
	}
}
