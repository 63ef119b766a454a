package ref

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Sight says for one row of length tokens without a past which keys a query sees, and at which
// distance the rotation sees them: where the query stands minus where the key stands, in the band
// that holds the key. Queries and keys are given by index, from 0 to length − 1. documents are the
// tokens' ids [length] where the attention's mask asks for them.
func Sight(a rope.Attention, documents []int64, length int) (func(query, key int) (distance float64, visible bool), error) {
	p := &Problem{Attention: a, Batch: 1, Length: length, Documents: documents}
	if a.Mask.Documents != rope.NoDocuments || a.Mask.Restart {
		if len(documents) != length {
			return nil, fmt.Errorf("%d document ids for %d tokens", len(documents), length)
		}
	}
	p.widest = p.width()
	p.firstKeysEnds = []int{p.firstKeysEnd(0)}
	var shift int64
	if len(p.bands()) > 1 || a.Chunk > 0 {
		var err error
		if shift, err = p.shift(0); err != nil {
			return nil, err
		}
	}
	return func(query, key int) (float64, bool) {
		b := p.bands()[p.band(query, key, shift)]
		return p.queryAt(b, p.position(0, query)) - p.keyAt(b, p.position(0, key)), p.sees(0, query, key)
	}, nil
}
