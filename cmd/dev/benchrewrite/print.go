package main

import (
	"fmt"
	"slices"
)

func printRuns(name string, copies, synced []float64, runs []result) {
	var whole []float64
	best := runs[0]
	for _, r := range runs {
		whole = append(whole, r.Seconds)
		if r.Seconds < best.Seconds {
			best = r
		}
	}
	cp, bound := slices.Min(copies), cpTimes*slices.Min(copies)+cpSeconds
	fmt.Printf("\n%s\n", name)
	fmt.Printf("  cp                       %s s\n", list(copies))
	fmt.Printf("  cp, then flush to disk   %s s (the rewriter flushes what it writes)\n", list(synced))
	fmt.Printf("  rewrite                  %s s: %.2f × cp; at most %.1f × cp + %.0f s = %.2f s: %s\n",
		list(whole), best.Seconds/cp, cpTimes, cpSeconds, bound, met(best.Seconds <= bound))
	fmt.Printf("    %-22s %6.2f s\n", "processor time", best.CPU)
	proof := 0.0
	for _, p := range best.Phases {
		fmt.Printf("    %-22s %6.2f s\n", p.Name, p.Seconds)
		if p.Name != "writing" {
			proof += p.Seconds
		}
	}
	fmt.Printf("  to the finished proof    %.2f s, %d of %d sites; at most %.0f s: %s\n", proof, best.Report.Rewritten(), len(best.Report.Sites), proofBound, met(proof <= proofBound))
	var m memory
	for _, r := range runs {
		if r.Memory.Over > m.Over {
			m = r.Memory
		}
	}
	fmt.Printf("  memory over the file     %d MB (own %d, programs and libraries %d; %d MB of the file in memory then); at most %d MB: %s\n",
		m.Over>>20, m.Own>>20, m.Files>>20, m.Mapped>>20, memoryOver>>20, met(m.Over <= memoryOver))
}

func list(seconds []float64) string {
	text := ""
	for i, s := range seconds {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%.2f", s)
	}
	return text
}

func met(ok bool) string {
	if ok {
		return "met"
	}
	return "NOT MET"
}
