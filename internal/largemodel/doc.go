// Package largemodel writes decoders of the size of large language models, as
// torch's exporter writes them, for tests and benchmarks of scale. Their
// weights are what makes them large and nobody needs them: they are external
// data in a file that is sparse (all zeros, next to no room on the disk) or not
// there at all.
package largemodel
