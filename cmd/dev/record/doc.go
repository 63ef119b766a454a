// Record writes down what rope-rewrite does: for each model and request the exit
// code, the messages, the report's JSON without its time, and the SHA-256 of each
// file that was written.
//
//	record MODEL.onnx… > before.txt
//
// Two records of the same models differ where the program's behaviour does. Before
// a change of structure `make record` writes build/record.txt; after it the same
// command must write the same text. Where words were changed on purpose,
//
//	record -compare before.txt after.txt
//
// compares the two by words.tsv, which says what became of them.
package main
