// Package opset raises the version of ONNX's standard operators that a model is
// written against. What the model computes stays the same by the operators' texts, and
// ONNX Runtime gives the same bits for every conversion that is tested here, but for
// AveragePool: it has another kernel for that from version 19 on. It has none of version 22
// for RoiAlign, MaxRoiPool, GlobalLpPool and the random operators.
//
//	raised, err := opset.Raise(m, 18) // from 14, say: axes of ReduceMean become an input
//
// A version of the standard operators may change what an operator means, and what
// a node looks like. Two tables say so, and nothing else in the package does:
//
//   - operators.txt has every operator with the versions that say something of it.
//     testdata/operators.py writes it from the Python package onnx.
//   - changes.go has what becomes of a node at each version that changed its operator
//     so that a node of the version before is no longer read as it was. Where that
//     cannot be told surely, it is a refusal with its reason.
//
// To know a newer version, let the script write the table for it; TestTablesAgree names the
// steps that then lack a conversion, and the script prints what else the version says in other
// words.
//
// Every node goes up version by version. Graphs inside nodes are raised with the graph
// around them, and functions of the model's own from the versions that they name. Nodes
// of other domains, and calls of functions, are unchanged.
//
// Two things are looked up in the graph, and where they are not known, the conversion does
// without or is refused: the rank and the element type of a value (facts.go), and constants.
package opset
