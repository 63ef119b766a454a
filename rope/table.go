package rope

// table lists every method, axis by axis. A new method is one file and one
// line here. (A function, because methods and table would otherwise refer to
// each other while the package is initialised.)
func table() []Method {
	return []Method{
		none,
		theta,
		linear,
		ntk,
		partialNTK,
		ntkByParts,
		yarn,
		llama3,
		betaAry,
		resonance,
		nope,

		identity,
		stringMap,
		rerope,
		leakyReRoPE,
		selfExtend,
		dualChunk,

		keep,
		causal,
		slidingWindow,
		firstKeys,
		intraDocument,
		intraDocumentReset,
		anchor,
	}
}
