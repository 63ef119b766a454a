// Package eval runs pieces of a model in ONNX Runtime, without its weights.
//
// MeasureShapes runs a skeleton of the model, in which products with weights and large
// constants are zeros of the same shape, at several batches, lengths and pasts. It gives
// a ShapeTable: how the sizes in the graph follow from these three, which input dimension
// is which, and which sizes are static. Where ONNX Runtime does not run the skeleton, it
// leaves out the layers that nothing is asked of (residual.go); it refuses models whose
// skeleton does not run then either, under any reading of the input shapes.
//
// Extract takes output values and boundaries and gives a Piece: the nodes between them.
// Boundaries are values, hidden states, that will be fed. It refuses pieces that contain
// a product with weights or nodes that must not be run. An Evaluator loads pieces
// (Open, OpenPiece, Load), and Loaded.Run runs them at a Point. Where the model has
// static sizes, Run makes several runs of one or pads them (staticrun.go).
//
// Three things are done with a piece besides: Piece.Double retypes it to float64, the
// reference of a proof; ByRows makes one that computes chosen rows of a mask only; Steady
// checks that nothing in it changes with very many tokens.
//
// The three stand here and not in packages of their own because each makes a Piece or
// looks into a loaded one: what a Piece knows of values that the graph does not have would
// have to be open to all. Their files are float64.go and model64.go, byrows*.go, steady.go.
//
// It stands above graph and bound, below rotation and score, which ask the questions.
// Start with Piece (piece.go), Loaded (loaded.go) and ShapeTable (shapetable.go); static.go
// and staticrun.go are about static sizes, inputroles.go and skeleton.go about shapes.
package eval
