// Package pairs tries features together: a table of all of them (features.go), the rules of what cannot be together
// (rules.go), and rows of settings that have every other pair (row.go). docs/results/pairs.md is its page.
//
// A new feature, or a new setting of one, is a line in features.go. Where it cannot be together with another one, the
// rewriter refuses it with a sentence, and rules.go has a line with a part of it.
package pairs
