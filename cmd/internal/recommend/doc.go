// Package recommend finds out which method a model needs for a context, if any, by asking the model.
//
// A Search first asks the unchanged model short questions, to see whether it understands them, and then long
// ones, to see where it begins to fail. If it fails at the wanted context, Candidates are tried there: all of
// them with few samples, the better half with more, until two are left. The best one is compared with the
// unchanged model on the same texts, at the context and below it. What was not measured is not recommended.
//
// Measure is the way to models; a test gives its own.
package recommend
