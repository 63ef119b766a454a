package measure

import (
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Attention is one site with what was measured of it.
type Attention struct {
	Index    int // among the model's attentions, in the graph's order
	Scope    *site.Scope
	Site     *site.Sized
	Measured *Measured
}

// A call that reaches beyond a table of cosines fails, however far the scaling
// in it is good for. So tables end where the context does, or where the scaling
// is good for no more.

// Known is what holds for a site of what is known of the model. Where the graph
// carries a scaling, it reaches farther than what the model was trained on first.
func (l *Measured) Known(c rope.Context) rope.Context {
	if _, ok := l.Attention.Encoding.Base(); !ok {
		c.Original = 0
	}
	return c
}
