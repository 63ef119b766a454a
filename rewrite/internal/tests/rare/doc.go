// Package rare inserts rare conditions into real exports, and judges whether what is then said of them is so.
//
// A mutant differs from its export in few calls: with so many tokens, cached ones or rows, at one position, at one
// padding. It knows a call in which it does. Where a layer of it is rewritten and said to be equal for any number of
// tokens, the rewritten model must give the mutant's logits in that call.
//
// Start with kinds (conditions.go: how a condition is computed), acts (acts.go: what it changes) and judge (judge.go).
package rare
