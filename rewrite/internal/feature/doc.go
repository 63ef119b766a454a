// Package feature has what a rewrite may add to a model besides methods: document ids (Documents), a
// key-value cache of fixed capacity (FixedCache), and the logits of single tokens (LastLogits). Each
// feature checks the analysis, says what it adds to a site, and changes the model after its sites are
// written. A new feature is one file, one field of Asked and one line of Make.
package feature
