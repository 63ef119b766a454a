// Package backend writes what sites become. A target is one file and one line of the table in backend.go:
// Accepts refuses what it cannot do before anything is run, Form decides for all sites together how each is
// written and by which nodes, or refuses with a sentence that says what to do instead, and Write changes the
// model. The model is changed only when all sites are taken.
package backend
