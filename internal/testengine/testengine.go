// Package testengine remembers what models gave, for tests that rewrite one export again and
// again: a piece of it that was evaluated is not loaded or evaluated a second time.
//
//	memory := testengine.New(1 << 30)
//	eng, err := memory.Open(engine.Config{Threads: 1}, open) // open makes the engine that evaluates
//
// An engine of a memory gives what the engine below it would give. Errors are not remembered, nor
// is what comes from models in files, which may change.
package testengine

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"sync"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
)

// Memory is what was evaluated, for any number of engines at a time.
type Memory struct {
	mu     sync.Mutex
	limit  int64
	bytes  int64
	loaded map[key]bool
	runs   map[key]map[string]engine.Tensor
	order  []key // of runs, the oldest first
}

// key is a hash of 128 bits.
type key [2]uint64

// seeds are those of its two halves.
var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// New returns a memory for so many bytes of outputs. Beyond them it forgets the oldest.
func New(limit int64) *Memory {
	return &Memory{limit: limit, loaded: map[key]bool{}, runs: map[key]map[string]engine.Tensor{}}
}

// Open returns an engine that asks the memory first. The engine below is opened when something is
// to be evaluated, and then only.
func (m *Memory) Open(c engine.Config, open func(engine.Config) (engine.Engine, error)) (engine.Engine, error) {
	return &remembering{memory: m, config: c, open: open}, nil
}

// remembering is an engine.
type remembering struct {
	memory *Memory
	config engine.Config
	open   func(engine.Config) (engine.Engine, error)

	mu    sync.Mutex
	below engine.Engine
}

func (e *remembering) engine() (engine.Engine, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var err error
	if e.below == nil {
		e.below, err = e.open(e.config)
	}
	return e.below, err
}

func (e *remembering) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.below == nil {
		return nil
	}
	return e.below.Close()
}

// Load loads a model that was not loaded before, so that one which cannot be is refused here.
func (e *remembering) Load(ctx context.Context, model engine.Model) (engine.Session, error) {
	if model.Bytes == nil || model.Folder != "" {
		below, err := e.engine()
		if err != nil {
			return nil, err
		}
		return below.Load(ctx, model)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := &session{engine: e, model: model, key: keyOf(e.config, model)}
	if e.memory.isLoaded(s.key) {
		s.model.Bytes = bytes.Clone(model.Bytes) // it may be loaded later
		return s, nil
	}
	if err := s.load(ctx); err != nil {
		return nil, err
	}
	e.memory.setLoaded(s.key)
	return s, nil
}

// session is one of a remembering engine.
type session struct {
	engine *remembering
	model  engine.Model
	key    key
	below  engine.Session // nil as long as everything is remembered
}

func (s *session) load(ctx context.Context) error {
	below, err := s.engine.engine()
	if err != nil {
		return err
	}
	s.below, err = below.Load(ctx, s.model)
	return err
}

func (s *session) Run(ctx context.Context, feeds map[string]engine.Tensor) (map[string]engine.Tensor, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	run := keyOfRun(s.key, feeds)
	if outputs, known := s.engine.memory.recall(run); known {
		return outputs, nil
	}
	if s.below == nil {
		if err := s.load(ctx); err != nil {
			return nil, err
		}
	}
	outputs, err := s.below.Run(ctx, feeds)
	if err == nil {
		s.engine.memory.keep(run, outputs)
	}
	return outputs, err
}

func (s *session) Close() error {
	if s.below == nil {
		return nil
	}
	return s.below.Close()
}

func (m *Memory) isLoaded(k key) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.loaded[k]
}

func (m *Memory) setLoaded(k key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loaded[k] = true
}

// recall returns a copy of what a run gave.
func (m *Memory) recall(k key) (map[string]engine.Tensor, bool) {
	m.mu.Lock()
	kept, known := m.runs[k]
	m.mu.Unlock()
	return clone(kept), known
}

// keep remembers a copy of what a run gave.
func (m *Memory) keep(k key, outputs map[string]engine.Tensor) {
	size := bytesOf(outputs)
	if size > m.limit {
		return
	}
	kept := clone(outputs)
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.runs[k]; known { // another engine was as fast
		return
	}
	m.runs[k], m.order = kept, append(m.order, k)
	for m.bytes += size; m.bytes > m.limit; m.order = m.order[1:] {
		m.bytes -= bytesOf(m.runs[m.order[0]])
		delete(m.runs, m.order[0])
	}
}

func clone(tensors map[string]engine.Tensor) map[string]engine.Tensor {
	out := make(map[string]engine.Tensor, len(tensors))
	for name, t := range tensors {
		out[name] = engine.Tensor{Type: t.Type, Dims: slices.Clone(t.Dims), Data: bytes.Clone(t.Data)}
	}
	return out
}

func bytesOf(tensors map[string]engine.Tensor) (sum int64) {
	for _, t := range tensors {
		sum += int64(len(t.Data))
	}
	return sum
}

// keyOf tells models apart, and what they are evaluated with.
func keyOf(c engine.Config, m engine.Model) key {
	h := newHash()
	h.part(fmt.Appendf(nil, "%q %q %q %d %v %d", c.Runtime, c.Library, c.Provider, c.Threads, c.Timeout, c.Memory))
	h.part(fmt.Appendf(nil, "%q %q %t %t %t", m.Inputs, m.Outputs, m.Optimize, m.Library, m.Large))
	h.part(m.Bytes)
	return h.sum()
}

// keyOfRun tells runs of a model apart.
func keyOfRun(model key, feeds map[string]engine.Tensor) key {
	h := newHash()
	h.part(fmt.Append(nil, model))
	for _, name := range slices.Sorted(maps.Keys(feeds)) {
		t := feeds[name]
		h.part(fmt.Appendf(nil, "%q %d %d", name, t.Type, t.Dims))
		h.part(t.Data)
	}
	return h.sum()
}

// hash makes a key.
type hash [2]maphash.Hash

func newHash() *hash {
	h := &hash{}
	for i := range h {
		h[i].SetSeed(seeds[i])
	}
	return h
}

// part adds a part with its length, so that no two lists of parts are alike.
func (h *hash) part(b []byte) {
	for i := range h { // a Hash copies what it is given; Bytes does not
		var part [16]byte
		binary.LittleEndian.PutUint64(part[:8], uint64(len(b)))
		binary.LittleEndian.PutUint64(part[8:], maphash.Bytes(seeds[i], b))
		h[i].Write(part[:])
	}
}

func (h *hash) sum() key { return key{h[0].Sum64(), h[1].Sum64()} }
