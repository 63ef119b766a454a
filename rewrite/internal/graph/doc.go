// Package graph is the view of a model that sites are found and measured in.
//
// New takes a model and gives a Graph: the live nodes of its main graph in
// topological order, who makes and who reads each value, the constants, and the class
// of every value. The class says what a value depends on: nothing but weights, sizes,
// integer inputs (ids, positions, masks), or hidden states. Names are never looked at
// for meaning. The model is not changed, and no weight is read.
//
// Fused ops (GroupQueryAttention, RotaryEmbedding and others) are read through the
// adapters of rewrite/internal/fused. A Graph therefore has three views, with the same names of
// values: Source has the nodes as the model has them, the Graph itself has fused ops
// expanded into primitive nodes, and Definition has them expanded by the ops' whole
// definitions.
//
// New refuses broken models: a value with two producers, a node without inputs
// that it needs, a cycle. A fused op that its adapter cannot read stays as it is, with
// the reason in Unread. Refusal is the error of all later stages: why an attention
// site is kept, and at which node.
//
// It stands above ir and bound, below eval and site. Start with Graph (graph.go), then
// classify.go for the classes and expand.go for the views. shapehints.go, ranks.go,
// lengths.go and widths.go say what a graph tells about ranks and sizes without being run.
// The other files answer one question each about a node or a value; all of them ask the
// same maps of a Graph, which is why they are one package.
package graph
