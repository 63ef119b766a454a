// Package survey says what the attention of a model computes, whoever wrote it: the
// sites of an exporter are measured by package rewrite, those of this project are
// read from the nodes of its op. The model is looked at and not changed.
//
// Start with Of.
package survey
