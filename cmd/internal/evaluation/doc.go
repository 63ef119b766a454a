// Package evaluation measures what a method did to a model: whether it still finds what stands
// in a long text, and how well it predicts one.
//
// A Plan names tasks, lengths and depths; Variants are the models, each a file as it is or one
// that is patched for the purpose. Run computes one sample after the other and hands each out
// as it comes, so that an interrupted evaluation goes on where it was (Journal). Summarise
// makes cells of the samples, with intervals.
//
// # What is where
//
//   - task/: what is asked, in which text, and how an answer is scored
//   - trial.go, prompt.go: a task's samples as tokens, in the model's chat form
//   - share.go: what neighbouring trials have in common is computed once
//   - variant.go: a model, patched and opened
//   - run.go, perplexity.go: trials and texts through a model
//   - journal.go, about.go: samples in a file, one line each, and whose they are
//   - summary.go, means.go, interval.go: cells, means of tasks and their intervals
//   - check.go: conditions such as passkey@12K>=0.9
//   - report.go, names.go: heat maps, curves and a page
package evaluation
