// Package modeldiff says in what two models differ: methods and attention sites, nodes
// by op, inputs and outputs, weights, bytes.
//
// Start with Run. Weights are compared by digest and read a piece at a time; those
// that are the same bytes of one file are not read at all.
package modeldiff
