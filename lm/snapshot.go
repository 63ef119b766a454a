package lm

import (
	"errors"
	"slices"
	"sync"
)

// Snapshot is what a sequence held at some time: a prompt that many texts begin with is computed once, also
// for other sequences of the same model. One of a growing cache shares the cache's memory and costs nothing;
// one of a cache of fixed capacity is a copy of its tokens.
type Snapshot struct {
	decoder           *Decoder
	tokens, documents []int64

	mu   sync.Mutex
	kept kept // nil after Close
}

// Snapshot keeps what the cache holds now, until the snapshot is closed.
func (s *Sequence) Snapshot() (_ *Snapshot, err error) {
	if err := s.gate.enter(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.gate.leave()) }()
	k, err := s.cache.keep(int64(len(s.tokens)))
	if err != nil {
		return nil, err
	}
	return &Snapshot{decoder: s.decoder, kept: k, tokens: slices.Clone(s.tokens), documents: slices.Clone(s.documents)}, nil
}

// Restore gives the cache what a sequence of the same model held when the snapshot was taken. A snapshot can
// be restored many times.
func (s *Sequence) Restore(from *Snapshot) (err error) {
	if err := s.gate.enter(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.gate.leave()) }()
	from.mu.Lock()
	defer from.mu.Unlock()
	switch {
	case from.decoder != s.decoder:
		return errors.New("the snapshot is of another model")
	case from.kept == nil:
		return ErrClosed
	}
	if err := s.cache.restore(from.kept); err != nil {
		return err
	}
	s.tokens, s.documents = slices.Clone(from.tokens), slices.Clone(from.documents)
	return nil
}

// Length is the number of tokens that the snapshot holds.
func (s *Snapshot) Length() int { return len(s.tokens) }

// Close frees the snapshot. No sequence is changed.
func (s *Snapshot) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		return nil
	}
	k := s.kept
	s.kept = nil
	return k.close()
}
