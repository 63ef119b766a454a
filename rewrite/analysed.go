package rewrite

// analysed is one site with what was measured of it.
type analysed struct {
	index  int // among the model's attentions, in the graph's order
	scope  *scope
	site   *sizedSite
	lifted *lifted
}
