package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testmarkup"
	"github.com/rope-rewrite/rope-rewrite/modeldiff"
	"github.com/rope-rewrite/rope-rewrite/validate"
)

// What a model calls its nodes, and what files are called, is text in validate's page.
func TestValidationPageEscapesNames(t *testing.T) {
	for _, name := range append(testmarkup.Hostile, strings.Repeat("long ", 10_000)) {
		report := &validate.Report{Original: name, Patched: name, Verdict: validate.Different, Notes: []string{"The node " + name + " differs."},
			Rebuilt: &validate.Rebuilt{First: &modeldiff.FileDifference{Difference: modeldiff.Difference{What: name, Where: name}, Altered: true}},
			Claim:   &validate.Claim{Layers: []validate.Layer{{Node: name}}}}
		path := filepath.Join(t.TempDir(), "page.html")
		if err := writeValidation(path, report); err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		testmarkup.Check(t, string(page))
		if t.Failed() {
			t.Fatalf("with %q", name)
		}
	}
}
