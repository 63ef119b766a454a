// Package kit is what the tests of rewrites share: exports and their goldens, decoders, a model
// compared with what a rewrite made of it, and a real export to be operated on.
//
// Tests run in folders beside this one, so Testdata is the same for all of them.
package kit
