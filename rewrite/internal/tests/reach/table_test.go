package reach_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/ranges"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

var write = flag.Bool("write", false, "write the page of results anew")

const page = "../../../../docs/results/reach.md"

// The page says for each export of testdata for how many tokens its layers are known.
func TestReachOfExports(t *testing.T) {
	testruntime.Require(t)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var head, tail bytes.Buffer
	known := map[string][]string{} // the columns of each export
	for line := range strings.Lines(string(text)) {
		switch cells := strings.Split(line, "|"); {
		case strings.HasPrefix(line, "| `"):
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			known[strings.Trim(cells[1], "`")] = cells[1:5]
		case len(known) == 0:
			head.WriteString(line)
		default:
			tail.WriteString(line)
		}
	}
	files, err := filepath.Glob(filepath.Join(kit.Testdata, "*", "*", "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(path string) bool {
		return !slices.Contains([]string{"models", "coverage", "field"}, filepath.Base(filepath.Dir(filepath.Dir(path))))
	})
	if !*write {
		files = testsample.Of(t, files, 12)
	}
	for _, path := range files {
		name := filepath.Base(filepath.Dir(path))
		row := known[name]
		if row == nil {
			row = []string{"`" + name + "`", "–", "", ""}
		}
		now, why := reachOf(t, path)
		if !*write && (row[2] != now || row[3] != why) {
			t.Errorf("%s is known for %q (%s); the page says %q (%s)", name, now, why, row[2], row[3])
		}
		row[2], row[3] = now, why
		known[name] = row
	}
	if *write {
		for _, name := range slices.Sorted(maps.Keys(known)) {
			row := known[name]
			fmt.Fprintf(&head, "| %s | %s | %s | %s |\n", row[0], row[1], row[2], row[3])
		}
		if err := os.WriteFile(page, append(head.Bytes(), tail.Bytes()...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// reachOf says for how many tokens the layers of an export are known, and why for no more.
func reachOf(t *testing.T, path string) (known, why string) {
	report, err := kit.Rewrite(t.Context(), kit.OpenModel(t, path), rewrite.Options{AllowUnchanged: true, PlanOnly: true})
	if report == nil || len(report.Sites) == 0 {
		return "no layer", ""
	}
	if err != nil {
		return "unchanged", ""
	}
	reach, verified := report.Reach(), 0
	for _, s := range report.Sites {
		if s.Proof != nil {
			verified++
		}
	}
	var reasons []string
	for _, l := range reach.Limited {
		text := "layers " + ranges.Text(l.Layers) + ": " + cmp.Or(l.Why, "cross-attention, on samples")
		reasons = append(reasons, strings.ReplaceAll(strings.ReplaceAll(text, "|", "/"), kit.Testdata, ""))
	}
	why = strings.Join(reasons, "; ")
	switch {
	case verified == 0:
		return "unchanged", why
	case len(reach.Limited) == 0:
		return "any number", why
	case reach.AnyLength > 0:
		return fmt.Sprintf("any number in %d of %d", reach.AnyLength, verified), why
	}
	return strings.TrimPrefix(strings.TrimPrefix(reach.String(), fmt.Sprintf(", %d of them ", verified)), ", "), why
}
