// Package feature has what a rewrite may add to a model beside the methods of its sites: document ids
// (Documents), a key-value cache of fixed capacity (FixedCache), the logits of single tokens (LastLogits).
// Each checks what was analysed, says what it gives to a site, and changes the model after its sites were
// written. A new feature is one file, one field of Asked and one line of Make.
package feature
