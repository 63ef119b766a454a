// Package plan says what each site of a model becomes: the value that it is to compute (rope.Attention),
// how it is written (lower.Form), and by which nodes. Methods applies the methods that were asked for,
// package feature adds inputs and caches, and package backend chooses the form. Nothing is changed here:
// package backend writes the Plan.
package plan
