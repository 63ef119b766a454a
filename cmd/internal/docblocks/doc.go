// Package docblocks holds the test that runs what the documentation shows: the blocks of the README and of
// each page of docs/, one after the other, in a folder for each page. It also follows every link.
package docblocks
