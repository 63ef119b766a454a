package measure

import (
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Attention is one site with what was measured of it.
type Attention struct {
	Index    int // among the model's attention layers, in the graph's order
	Scope    *site.Scope
	Site     *site.Sized
	Measured *Measured
}

// Known returns what is known of the model's context, as far as it holds for the site.
// Where the graph has a scaled rotation already, the original context is not known: the
// model was trained for a longer one than the one it was pretrained for.
func (m *Measured) Known(known rope.Context) rope.Context {
	if _, ok := m.Attention.Encoding.Base(); !ok {
		known.Original = 0
	}
	return known
}
