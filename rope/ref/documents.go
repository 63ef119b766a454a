package ref

import (
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// reader is the id of tokens that see every key.
const reader = -1

// document is the id of the token at an index.
func (p *Problem) document(batch, index int) int64 { return p.Documents[batch*p.width()+index] }

// mayRead says whether the documents let a query see a key.
func (p *Problem) mayRead(batch, query, key int) bool {
	rule := p.Attention.Mask.Documents
	if rule == rope.NoDocuments {
		return true
	}
	mine, theirs := p.document(batch, query), p.document(batch, key)
	return mine == reader || mine == theirs || rule == rope.AnchorDocument && theirs == 0
}

// restarts says whether the token at an index counts from the beginning of its
// document. Readers belong to none.
func (p *Problem) restarts(batch, index int) bool {
	return p.Attention.Mask.Restart && p.document(batch, index) != reader
}

// restarted is the position of such a token: how many real tokens of its id
// stand before it in the row, from Start on, or from 0 in document 0.
func (p *Problem) restarted(batch, index int) int64 {
	mine := p.document(batch, index)
	position := p.Attention.Mask.Start
	if mine == 0 {
		position = 0
	}
	for j := range index {
		if p.isReal(batch, j) && p.document(batch, j) == mine {
			position++
		}
	}
	return position
}

// checkDocuments refuses ids without a mask over them, and the other way round.
func (p *Problem) checkDocuments() error {
	m := p.Attention.Mask
	switch {
	case (m.Documents != rope.NoDocuments) != (p.Documents != nil):
		return errors.New("document ids and a mask over documents (Mask.Documents) go together; one of them is missing")
	case m.Restart && m.Documents == rope.NoDocuments:
		return errors.New("positions that restart in each document need a mask over documents")
	case m.Restart && len(p.bands()) > 1:
		return errors.New("positions that restart in each document cannot be combined with a map of several bands")
	case m.Start < 0:
		return fmt.Errorf("documents start at position %d; expected 0 or more", m.Start)
	}
	if p.Documents == nil {
		return nil
	}
	for b := range p.Batch {
		for j := range p.total(b) {
			if id := p.document(b, j); id < reader && p.isReal(b, j) {
				return fmt.Errorf("row %d: the token at index %d has the document id %d; ids are −1 (reader), 0 (anchor) or more", b, j, id)
			}
		}
	}
	return nil
}
