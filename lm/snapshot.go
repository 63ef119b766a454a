package lm

import (
	"errors"
	"slices"
)

// Snapshot is what a Decoder's cache held at some time: a prompt that many texts begin with
// is computed once. A snapshot of a growing cache shares the cache's memory and costs
// nothing; one of a cache of fixed capacity is a copy of its tokens.
type Snapshot struct {
	decoder   *Decoder
	kept      kept
	length    int64
	documents []int64
}

// Snapshot keeps what the cache holds now, until the snapshot is closed.
func (d *Decoder) Snapshot() (*Snapshot, error) {
	k, err := d.memory.keep(d.length)
	if err != nil {
		return nil, err
	}
	return &Snapshot{decoder: d, kept: k, length: d.length, documents: slices.Clone(d.documents)}, nil
}

// Restore sets the cache to what it held when the snapshot was taken. A snapshot can
// be restored many times. Logits of earlier calls are no longer valid.
func (d *Decoder) Restore(s *Snapshot) error {
	if s.decoder != d || s.kept == nil {
		return errors.New("the snapshot is closed, or belongs to another decoder")
	}
	if err := d.memory.restore(s.kept); err != nil {
		return err
	}
	d.length, d.documents = s.length, slices.Clone(s.documents)
	return nil
}

// Length is the number of tokens that the snapshot holds.
func (s *Snapshot) Length() int { return int(s.length) }

// Close frees the snapshot. The decoder is not changed.
func (s *Snapshot) Close() error {
	if s.kept == nil {
		return nil
	}
	k := s.kept
	s.kept = nil
	return k.close()
}
