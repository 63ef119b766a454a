package pairs

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

var write = flag.Bool("write", false, "write the page of results anew")

const page = "../../../../docs/results/pairs.md"

// The page lists the features and the rules, and counts what TestPairs and TestRefused run.
func TestPage(t *testing.T) {
	t.Parallel()
	rows, impossible := covering(rand.New(rand.NewPCG(seed, seed)))
	for _, p := range impossible {
		r := make(row, len(features))
		r[p.f], r[p.g] = p.s, p.t
		if len(r.broken()) == 0 {
			t.Errorf("no row has the pair %v, and no rule says why", r)
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Every pair of features

Written by %[1]sgo test ./rewrite/internal/tests/pairs -run TestPage -write%[1]s from the tables of that package. Of the features below there are
%[2]d pairs of settings. %[3]d of them are together in one of %[4]d rows that %[1]sTestPairs%[1]s runs, beside %[5]d rows that are drawn; the other
%[6]d break one of the %[7]d rules below, and %[1]sTestRefused%[1]s tries every rule. %[1]smake test-every%[1]s runs all rows, %[1]smake test%[1]s a sample.

Each row is a small export that is rewritten with all of its settings. Its plain form has the same methods, a cache that grows, and the op: each
layer there is compared with the float64 reference of its methods, in three calls of a batch whose second row has padding on its left. An error
of twice that of a plain implementation in the same precision fails. The row's own form must then give the logits of the plain one, by the op
library and by the fallback, in one call, in pieces and in single tokens: %[8]d tokens, behind the trained length of %[9]d, behind each window
and each band, and behind what a ring holds.

`, "`", len(pairs()), len(pairs())-len(impossible), len(rows), more, len(impossible), len(rules), tokens, trained)
	b.WriteString("| feature | settings |\n|---|---|\n")
	for _, f := range features {
		var names []string
		for _, s := range f.settings {
			names = append(names, "`"+s.name+"`")
		}
		fmt.Fprintf(&b, "| %s | %s |\n", f.name, strings.Join(names, ", "))
	}
	b.WriteString("\n## What cannot be together\n`!` is any other setting, `|` is or. The sentence is a part of what the user reads.\n\n| settings | sentence |\n|---|---|\n")
	for _, of := range rules {
		var list []string
		for _, c := range of.together {
			list = append(list, "`"+strings.ReplaceAll(c, "|", `\|`)+"`")
		}
		fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(list, ", "), of.sentence)
	}
	if *write {
		if err := os.WriteFile(page, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(page); err != nil || !slices.Equal(text, b.Bytes()) {
		t.Errorf("%s is another page: run the test with -write (%v)", page, err)
	}
}
