package rope

import "slices"

// table lists every method, axis by axis. A new method is one file and one
// line here. (A function, because methods and table would otherwise refer to
// each other while the package is initialised.)
func table() []Method {
	list := []Method{
		none,
		theta,
		linear,
		ntk,
		dynamicLinear,
		dynamic,
		partialNTK,
		ntkByParts,
		yarn,
		longRoPE,
		llama3,
		proportional,
		betaAry,
		resonance,
		nope,
		logN,
		temperature,
		explicit,

		identity,
		stringMap,
		rerope,
		leakyReRoPE,
		selfExtend,
		dualChunk,
		randomized,

		keep,
		causal,
		slidingWindow,
		firstKeys,
		intraDocument,
		intraDocumentReset,
		anchor,
	}
	for i, m := range list {
		if m.scales() {
			list[i].Params = append(slices.Clip(m.Params), paramBase)
		}
	}
	return list
}
