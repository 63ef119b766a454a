package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// THIRD-PARTY.md is what the modules are, and each has a license that may be shipped.
func TestPageIsCurrent(t *testing.T) {
	want, err := page()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../../THIRD-PARTY.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("THIRD-PARTY.md is not current: run go generate ./cmd/dev/modules. It should be\n%s", want)
	}
}

func TestNamesOf(t *testing.T) {
	for text, want := range map[string][]string{
		"Apache License\n   Version 2.0": {"Apache-2.0"},
		"all rights reserved, ask us":    nil,
		"> Redistributions in binary form must reproduce the above copyright\n> notice": {"BSD"},
	} {
		if got, err := namesOf(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"GNU Affero General Public License", "Mozilla Public License, v. 2.0"} {
		if got, err := namesOf(text); err == nil {
			t.Errorf("%q is allowed as %q", text, got)
		}
	}
}

// Workflows run actions of one commit, with no rights but those that they name. A job that may write what others trust
// runs nothing of the project.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob("../../../.github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%q, %v", files, err)
	}
	pinned := regexp.MustCompile(`uses: [a-z-]+/[a-z-]+(?:/[a-z-]+)?@[0-9a-f]{40} # v[0-9.]+$`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "\npermissions:\n  contents: read\n") {
			t.Errorf("%s: it does not begin with rights to read alone", file)
		}
		for job := range strings.SplitSeq(string(text), "runs-on:") {
			if strings.Contains(job, "contents: write") && strings.Contains(job, "make ") {
				t.Errorf("%s: a job that may write runs the project's code", file)
			}
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); strings.Contains(line, "uses:") && !pinned.MatchString(line) {
				t.Errorf("%s: %q names no commit with its version", file, line)
			}
		}
	}
}
