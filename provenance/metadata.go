package provenance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// maxSize bounds what is read as a record. Those of the largest models have a tenth of it.
const maxSize = 8 << 20

// ErrNone says that a model has no record of a rewrite.
var ErrNone = errors.New("the model has no record of a rewrite")

// Read returns the record of a model. The error is ErrNone if there is none, and
// another one if the record is damaged or has a newer schema.
func Read(m *onnx.Model) (*Record, error) {
	for key, value := range m.Metadata() {
		if key == Key {
			r, err := parse(value)
			if err != nil {
				return nil, fmt.Errorf("the metadata %q is not a readable record of a rewrite: %w", short.Name(Key), err)
			}
			return r, nil
		}
	}
	return nil, ErrNone
}

func parse(text string) (*Record, error) {
	if len(text) > maxSize {
		return nil, fmt.Errorf("it has %d bytes, expected at most %d", len(text), maxSize)
	}
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal([]byte(text), &head); err != nil {
		return nil, err
	}
	if head.Version < 1 || head.Version > Version {
		return nil, fmt.Errorf("it has version %d, but this rope-rewrite knows versions up to %d; use a newer one", head.Version, Version)
	}
	var r Record
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields() // the version would have grown with them
	if err := d.Decode(&r); err != nil {
		return nil, err
	}
	return &r, r.check()
}

// check refuses what no rewrite writes.
func (r *Record) check() error {
	seen := map[int]bool{}
	layer := func(l int) error {
		if l < 0 || l > math.MaxInt32 || seen[l] {
			return fmt.Errorf("layer %d is in it twice, or is not a layer", l)
		}
		seen[l] = true
		return nil
	}
	for _, s := range r.Sites {
		for _, l := range s.Layers {
			if err := layer(l); err != nil {
				return err
			}
		}
		for _, list := range [][]string{s.Nodes, s.Ops, s.PositionIDs} {
			if list != nil && len(list) != len(s.Layers) {
				return fmt.Errorf("%d layers have %d nodes", len(s.Layers), len(list))
			}
		}
		if a := s.Original; !s.RotationOnly && (a.Heads < 1 || a.KVHeads < 1 || a.Heads%a.KVHeads != 0) {
			return fmt.Errorf("an attention of %d heads, %d of them for keys", a.Heads, a.KVHeads)
		}
	}
	for _, k := range r.Kept {
		if err := layer(k.Layer); err != nil {
			return err
		}
	}
	for l := range seen {
		if l >= len(seen) {
			return fmt.Errorf("it has %d layers, and one with the number %d", len(seen), l)
		}
	}
	return nil
}

// Write puts the record into the metadata of a model, in place of one that is there. It
// sets the record's Version, and empty lists where there are none.
func Write(m *onnx.Model, r *Record) error {
	r.Version = Version
	r.Edits, r.Sites, r.Kept = slices.Concat([]Edit{}, r.Edits), slices.Concat([]Site{}, r.Sites), slices.Concat([]Kept{}, r.Kept)
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("writing the record of the rewrite: %w", err)
	}
	m.SetMetadata(Key, string(text))
	return nil
}

// Layers counts the attention layers of the model.
func (r *Record) Layers() int { return len(r.Kept) + r.Rewritten() }

// Everywhere reports whether every rewritten layer that rotates has an edit.
func (r *Record) Everywhere(e Edit) bool {
	for _, s := range r.Sites {
		if a := s.Original; len(a.Encoding.Frequencies) == 0 || a.Cross {
			continue
		}
		if slices.ContainsFunc(s.Layers, func(layer int) bool { return !slices.Contains(e.Layers, layer) }) {
			return false
		}
	}
	return true
}

// Rewritten counts those that were rewritten.
func (r *Record) Rewritten() (n int) {
	for _, s := range r.Sites {
		n += len(s.Layers)
	}
	return n
}
