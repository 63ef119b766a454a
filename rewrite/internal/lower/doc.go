// Package lower writes a site as the fused op, and puts it into the model's graph.
//
// It takes a site with its dimensions (package site), what was measured of it (package
// measure), and the attention that it shall compute, which is the measured one in a proof
// and the edited one in a rewritten model. It gives nodes and constants: the op, and
// around it what brings the model's values to the op's form [batch, heads, length,
// channels] and back.
//
//   - Bind says which values the op reads and gives.
//   - Nodes writes the op for these values.
//   - Apply puts the nodes of all sites into the graph and removes what they replace.
//
// Bind returns an error where the model's own bias on the scores cannot be computed
// outside the site, Nodes where the op cannot have the attributes. Bind and Nodes change
// nothing; Apply is the only function here that changes a model.
//
// Start with Binding and Nodes in lower.go. canonical.go is about layouts, bias.go about
// masks that the op's attributes do not express, latent.go about latent attention,
// lengthtracked.go about caches that count their tokens, positions.go about positions and
// temperature, tokenscale.go about factors per token, which are applied before the op.
//
// Packages prove and plainonnx, which come next, use the same nodes.
package lower
