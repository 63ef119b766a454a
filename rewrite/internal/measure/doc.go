// Package measure finds out what a site computes, by running pieces of the model's graph
// on probe inputs.
//
// It takes a site with its dimensions (package site) and an eval.Evaluator, which runs
// pieces of the graph in ONNX Runtime. It gives a Measured: the site as a value of
// package rope (encoding, scale, softcap, sinks, mask), with the graph inputs of
// positions and padding and the limits up to which the model itself can compute. How the
// rotation alone and how the scores alone are measured is in packages rotation and score;
// here the parts are put together, and the rest of the site is checked: which head reads
// which, what happens to values and probabilities, what the cache holds.
//
// Anything that a rope.Attention cannot express is refused with a graph.Refusal: query
// and key that rotate differently, probabilities that are changed, a cache with something
// else than keys, rotated or as they come. For such a site RotationAlone may still measure the rotation,
// which is enough for methods that change frequencies alone.
//
// Start with Measured and Site in measure.go, which calls the parts in order:
// probabilities.go, repeat.go (values and heads), tokennorm.go (norms after the rotation),
// scores.go, branches.go (rotation of query and key). conditional.go is for models that
// change their frequencies with the number of tokens, latent.go for latent attention,
// packed.go for query, key and value in one tensor. explain.go, bias.go and buckets.go are
// apart: they name the positions of models without any rotation.
//
// The next package up, prove, tests what was measured against the model.
package measure
