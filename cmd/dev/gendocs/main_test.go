package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// docs/methods.md is what the table says today.
func TestCurrent(t *testing.T) {
	written, err := os.ReadFile("../../../docs/methods.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(written), methods()); diff != "" {
		t.Errorf("docs/methods.md is not current, run go generate ./rope (- written, + table):\n%s", diff)
	}
}
