// Package signature reads off a model what it takes and gives: which input is
// for tokens, positions, padding or documents, which present output continues
// which past input, and their sizes. Call lays out what such inputs are fed in
// one run.
//
//	s, err := signature.Read(model, folder)
//	call := signature.Call{Batch: 1, Length: 3, IDs: ids, Positions: positions, Mask: mask}
//	for _, in := range s.Inputs {
//		if in.Role != signature.Past {
//			values, dims := call.Feed(in)
//			...
//		}
//	}
//
// Caches are known by their shape, what the rewriter adds (document ids, the
// length of a fixed cache) by where its op reads it, and the rest by the names
// that exporters give. Which of this a program can run is its own matter: lm
// runs one sequence in its own process, internal/decoder whole batches in a
// worker.
package signature
