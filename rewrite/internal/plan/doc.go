// Package plan says what each site of a model becomes: the value that it is to compute (rope.Attention),
// how it is written (lower.Form), and by which nodes. Methods applies the methods that are asked for;
// package feature adds inputs and caches; package backend chooses the form. Nothing is changed here:
// a Plan is what package backend writes.
package plan
