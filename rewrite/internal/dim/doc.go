// Package dim describes sizes and the layout of hidden states. It is the lowest
// package of the rewriter and runs nothing.
//
// A Point is one choice of batch, length (new tokens) and past (cached tokens).
// An Extent is a size as a polynomial in these three. FitAll takes the shapes
// that a value had at SamplePoints and gives its shape as extents; it refuses
// shapes that follow no such polynomial. Extent.At and Evaluate go back from
// extents to numbers.
//
// A Layout says which dimension of a hidden state holds the batch, the heads,
// the tokens and the channels of a head. LayoutOf takes a shape as extents and
// recognises the dimensions by their sizes, never by names. It refuses shapes
// that lack a batch or a length, or have two dimensions for the tokens.
//
// A Grid says the same of scores, whose batch and heads may be one dimension. GridOf
// refuses what has no row for each query and no column for each key.
//
// Start with Point (point.go), Extent (extent.go) and LayoutOf (layout.go).
package dim
