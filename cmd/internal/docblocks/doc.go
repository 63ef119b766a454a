// Package docblocks holds the test that runs what the documentation shows: every block of
// docs/using.md and docs/topics.md, one after the other, in a folder of its own.
package docblocks
