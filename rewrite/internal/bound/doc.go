// Package bound keeps evaluation within memory. Pieces of somebody's model are run
// with chosen inputs; a Range or an Expand in them may ask for terabytes, and ONNX
// Runtime then takes what the machine has.
//
// It takes nodes in topological order, constants and the tensors to be fed, and
// follows shapes, and the contents of small integer values, through the ops that
// sizes are computed with. It runs nothing. Of an op that it does not know it says
// nothing.
//
// Check refuses nodes of which one would make a tensor above 2 GB, with an error
// that wraps ErrTooLarge; Elements refuses such a tensor before it is fed. Bounds does
// what Check does for a piece that is run many times.
//
// It stands above ir, below graph and eval. Start with Check (bound.go), then
// Estimate (estimate.go): its shapes are in shapes.go, the contents in fold.go.
package bound
