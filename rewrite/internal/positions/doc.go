// Package positions finds the positions that a graph computes itself: from a padding mask (a sum
// over the tokens before, with padded ones filled in), from sizes, or from an input of positions.
//
// Find takes what rotates a query or key. It gives the last value that everything passes through
// which tells tokens apart, as far as that holds one whole number for each token: the graph is
// evaluated to see that, and no pattern of nodes is looked for. Where the value is a graph input, or
// the index of each token, there is nothing to find: the rotation is then measured by these.
// A Reader evaluates such a value for a call. About tells what is needed of it: whether it is the
// index plus one number for each row, whether it falls below 0, and how far the graph computes it.
//
// It stands above eval and bisect, below site. Start with Find (find.go).
package positions
