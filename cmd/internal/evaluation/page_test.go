package evaluation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testmarkup"
)

// A variant is called after its model's file; that is text in the page and in its pictures.
func TestReportEscapesNames(t *testing.T) {
	for _, name := range testmarkup.Hostile {
		folder := t.TempDir()
		s := Summary{Cells: []Cell{{Variant: name, Task: "passkey", Length: 64, Depth: 0.1, Samples: 2, Rate: 0.5}, {Variant: name, Task: "passkey", Length: 64, Depth: 0.9, Samples: 2, Rate: 0.5}},
			Readings: []Reading{{Variant: name, Length: 64}}, Curves: []Curve{{Variant: name, Block: 16, Perplexity: []float64{3, 2}}}}
		if err := WriteReport(folder, []byte("{}"), s, []Title{{name, name, []string{name}}}, Made{Command: name, Version: "0.1.0", Date: "2026-11-28"}); err != nil {
			t.Fatal(err)
		}
		pages := 0
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".html") && !strings.HasSuffix(e.Name(), ".svg") {
				continue
			}
			pages++
			page, err := os.ReadFile(filepath.Join(folder, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			testmarkup.Check(t, string(page))
			if t.Failed() {
				t.Fatalf("%s with %q", e.Name(), name)
			}
		}
		if pages < 5 {
			t.Errorf("only %d pages and pictures were seen", pages)
		}
	}
}
