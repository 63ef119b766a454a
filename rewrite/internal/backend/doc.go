// Package backend writes what sites become. A target is one file and one line of the table in backend.go:
// Accepts refuses what it cannot do before anything is run. Form decides for all sites together how each is
// written and by which nodes, or returns an error that says what to do instead. Write changes the model, and
// only when Form has accepted all sites.
package backend
