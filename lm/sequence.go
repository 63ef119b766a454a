package lm

import (
	"context"
	"errors"
	"fmt"
)

// Sequence is one text in the making: the tokens so far, with their keys and values. It serves one caller at a
// time; a second one gets ErrBusy.
type Sequence struct {
	decoder   *Decoder
	cache     cache
	tokens    []int64 // that the cache holds
	documents []int64 // their ids
	gate      gate
}

// cache keeps keys and values between calls: one that grows, or one of fixed capacity.
type cache interface {
	// forward runs tokens after past ones. After an error what was kept for the
	// past ones is unchanged.
	forward(ctx context.Context, tokens []int64, past int64, documents []int64) (Logits, error)
	// reserve tells how many tokens there will be soon.
	reserve(tokens int64)
	// truncate leaves the first of so many tokens. It returns errOverwritten where a later one has taken the place
	// of one that they need.
	truncate(tokens, length int64) error
	// keep returns what the first tokens left, for restore.
	keep(length int64) (kept, error)
	// restore puts it back, any number of times.
	restore(k kept) error
	// mark is keep for the tokens that are there now, at little cost, until the next restore or truncate.
	mark() kept
	// close frees everything.
	close() error
}

// kept is the part of a cache that a Snapshot holds.
type kept interface{ close() error }

// NewSequence begins a text, with a cache of its own.
func (d *Decoder) NewSequence() (*Sequence, error) {
	if d.gate.isClosed() {
		return nil, ErrClosed
	}
	s := &Sequence{decoder: d, gate: gate{most: 1}, cache: &growing{Decoder: d}}
	if d.signature.Rows > 0 {
		fixed, err := newFixed(d, 1)
		if err != nil {
			return nil, err
		}
		s.cache = fixed
	}
	s.gate.free = s.cache.close
	return s, nil
}

// Decoder is the model of the sequence.
func (s *Sequence) Decoder() *Decoder { return s.decoder }

// Close frees the cache. Who uses the sequence now gets ErrClosed at the next step.
func (s *Sequence) Close() error { return s.gate.close() }

// Length is the number of tokens that the cache holds.
func (s *Sequence) Length() int { return len(s.tokens) }

// Tokens are those that the cache holds. The slice must not be changed.
func (s *Sequence) Tokens() []int64 { return s.tokens }

// Forward runs the model on further tokens of the sequence in one call and keeps their keys and values. After
// an error the cache is unchanged. A row without document ids belongs to document 1.
func (s *Sequence) Forward(ctx context.Context, row Row) (_ Logits, err error) {
	if err := s.gate.enter(); err != nil {
		return Logits{}, err
	}
	defer func() { err = errors.Join(err, s.gate.leave()) }()
	return s.forward(ctx, row)
}

// Prefill runs the model on further tokens in chunks (Options.Chunk), so that the memory of a call does not
// grow with them. The logits are those of the last chunk. After an error the cache is unchanged.
func (s *Sequence) Prefill(ctx context.Context, row Row) (_ Logits, err error) {
	if err := s.gate.enter(); err != nil {
		return Logits{}, err
	}
	defer func() { err = errors.Join(err, s.gate.leave()) }()
	return s.prefill(ctx, row)
}

// Compute makes the cache hold exactly these tokens, and returns the logits after the last one. What it holds
// of them already, from the first token on, is not computed again. An error leaves in the cache what was
// computed so far.
func (s *Sequence) Compute(ctx context.Context, row Row) (_ Logits, err error) {
	if err := s.gate.enter(); err != nil {
		return Logits{}, err
	}
	defer func() { err = errors.Join(err, s.gate.leave()) }()
	return s.compute(ctx, row)
}

// Truncate leaves the first tokens in the cache. A cache whose keys depend on the length of their call
// (WholePrompts) cannot be shortened: then none are left. A cache that is a ring cannot go back behind tokens whose
// place later ones have taken: that is an error, and nothing is changed.
func (s *Sequence) Truncate(length int) (err error) {
	if err := s.gate.enter(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.gate.leave()) }()
	if length < 0 || length > len(s.tokens) {
		return fmt.Errorf("truncate to %d tokens: the sequence has %d", length, len(s.tokens))
	}
	return s.truncate(length)
}

func (s *Sequence) truncate(length int) error {
	if length == len(s.tokens) {
		return nil
	}
	if s.decoder.whole {
		length = 0
	}
	if err := s.cache.truncate(int64(len(s.tokens)), int64(length)); err != nil {
		return err
	}
	s.tokens, s.documents = s.tokens[:length:length], s.documents[:length:length]
	return nil
}

// shared is how many tokens at the beginning of a row the sequence holds. At least one is left to compute,
// whose logits are asked for.
func (s *Sequence) shared(row Row) int {
	return min(commonPrefix(s.tokens, s.documents, row), len(row.Tokens)-1)
}

func commonPrefix(tokens, documents []int64, row Row) (n int) {
	for n < len(tokens) && n < len(row.Tokens) && tokens[n] == row.Tokens[n] && documents[n] == row.Documents[n] {
		n++
	}
	return n
}

func (s *Sequence) compute(ctx context.Context, row Row) (Logits, error) {
	row, err := row.complete()
	if err != nil {
		return Logits{}, err
	}
	err = s.truncate(s.shared(row))
	if errors.Is(err, errOverwritten) { // all of them are computed again
		err = s.truncate(0)
	}
	if err != nil {
		return Logits{}, err
	}
	n := len(s.tokens)
	return s.prefill(ctx, Row{row.Tokens[n:], row.Documents[n:]})
}

func (s *Sequence) prefill(ctx context.Context, row Row) (logits Logits, err error) {
	if row, err = row.complete(); err != nil {
		return Logits{}, err
	}
	if n, capacity := len(s.tokens)+len(row.Tokens), s.decoder.Capacity(); capacity > 0 && n > capacity {
		return Logits{}, &ContextError{Tokens: n, Context: capacity, Cache: true}
	}
	s.cache.reserve(int64(len(s.tokens) + len(row.Tokens)))
	before, tokens, documents := s.cache.mark(), s.tokens, s.documents
	defer func() {
		if err != nil && len(s.tokens) > len(tokens) {
			err = errors.Join(err, s.cache.restore(before))
			s.tokens, s.documents = tokens, documents
		}
		err = errors.Join(err, before.close())
	}()
	for len(row.Tokens) > 0 {
		n := min(s.decoder.chunk, len(row.Tokens))
		if logits, err = s.forward(ctx, Row{row.Tokens[:n], row.Documents[:n]}); err != nil {
			return Logits{}, err
		}
		row = Row{row.Tokens[n:], row.Documents[n:]}
	}
	return logits, nil
}

func (s *Sequence) forward(ctx context.Context, row Row) (Logits, error) {
	row, err := row.complete()
	if err != nil {
		return Logits{}, err
	}
	if s.gate.isClosed() {
		return Logits{}, ErrClosed
	}
	if err := s.decoder.known(row.Tokens); err != nil {
		return Logits{}, err
	}
	documents := append(s.documents, row.Documents...)
	logits, err := s.cache.forward(ctx, row.Tokens, int64(len(s.tokens)), documents)
	if err != nil {
		return Logits{}, fmt.Errorf("run the model on %d tokens after %d: %w", len(row.Tokens), len(s.tokens), err)
	}
	s.tokens, s.documents = append(s.tokens, row.Tokens...), documents
	return logits, nil
}
