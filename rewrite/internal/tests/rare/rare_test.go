package rare

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
)

// number is what make rare says.
func number(t *testing.T, variable string, otherwise int) int {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// TestRareConditions makes thirty mutants, or as many as ROPE_RARE says from the seed ROPE_RARE_SEED on: none that is said
// to be equal for any number of tokens may differ.
func TestRareConditions(t *testing.T) {
	testruntime.Require(t)
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	asked := os.Getenv("ROPE_RARE") != ""
	made, seed := number(t, "ROPE_RARE", 30), uint64(number(t, "ROPE_RARE_SEED", 1))
	if !asked {
		made = testsample.Times(t, 300, made)
	}
	counts := map[string]map[verdict]int{}
	run, bites := 0, 0
	for k := range made {
		var o trial
		t.Run(fmt.Sprint(seed+uint64(k)), func(t *testing.T) { o = try(t, eng, seed+uint64(k)) }) // which closes its model
		for _, row := range []string{o.Kind, "all"} {
			if counts[row] == nil {
				counts[row] = map[verdict]int{}
			}
			counts[row][o.Verdict]++
			if o.Bites {
				counts[row]["bites"]++
			}
		}
		if o.Verdict != notRun {
			run++
		}
		if o.Bites {
			bites++
		}
		if o.Verdict == wrong {
			t.Errorf("seed %d: %s: off by %.2g of the range %s", seed+uint64(k), o.Text, o.Off, o.Why)
		}
		if testing.Verbose() {
			fmt.Printf("# seed %d: %s; bites: %v; off by %.2g %s: %s\n", seed+uint64(k), o.Verdict, o.Bites, o.Off, o.Why, o.Text)
		}
	}
	if run < made*8/10 || bites < run*6/10 {
		t.Errorf("of %d mutants %d run and %d differ from their exports in their calls: too few to show anything", made, run, bites)
	}
	if asked {
		fmt.Print(table(counts))
	}
}

// table is what came of mutants by their kind.
func table(counts map[string]map[verdict]int) string {
	columns := []verdict{notRun, "bites", unchanged, limited, beyond, own, anyLength, wrong}
	var text strings.Builder
	text.WriteString("| kind |")
	for _, c := range columns {
		fmt.Fprintf(&text, " %s |", strings.Replace(string(c), "bites", "differ from the export", 1))
	}
	text.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, row := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&text, "| %s |", row)
		for _, c := range columns {
			fmt.Fprintf(&text, " %d |", counts[row][c])
		}
		text.WriteString("\n")
	}
	return text.String()
}
