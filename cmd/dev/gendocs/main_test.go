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

// docs/report.schema.json is what the report says today.
func TestReportSchema(t *testing.T) {
	written, err := os.ReadFile("../../../docs/report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := reportSchema()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(written), schema); diff != "" {
		t.Errorf("docs/report.schema.json is not current, run go generate ./rewrite (- written, + report):\n%s", diff)
	}
}
