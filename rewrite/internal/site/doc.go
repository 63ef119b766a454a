// Package site finds the attention layers of a graph and says where each one begins and
// ends.
//
// It takes the view of a model's graph (package graph) and, for the sizes, the shape
// table that package eval measured. It goes in three steps:
//
//   - Scopes and Find look for cores, softmax(f(q·kᵀ))·v: from each Softmax back to the
//     one product of two hidden states, and forward to the one product with the values.
//     Hidden states that are added on the way enter the site, too (bias.go).
//   - Delimit follows query, key and value back through linear nodes to the values
//     before rotation. The result is a Site: the values that enter it (its boundaries),
//     the values that it gives (output, present key, present value), and the nodes that
//     the op replaces.
//   - Size adds the dimensions of all these values. Sized.Layouts says which of them
//     are batch, heads, tokens and channels.
//
// Each step returns a new value. What has no clear core, or reads a hidden state that is
// neither query, key, value nor cache and is not added to scores, is refused with a graph.Refusal that names the
// node and says what was expected.
//
// Start with Core and Find in find.go, then Site and Delimit in site.go; linear.go says
// how far back the path of a query or key goes. No name of a node or tensor decides
// anything here, and nothing is run: package measure, the next one up, does that.
package site
