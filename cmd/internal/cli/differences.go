package cli

import (
	"fmt"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/difference"
)

// Row is a row of a table of what two models have, or a model and its configuration.
type Row struct {
	difference.Difference
	Verdict string
	Below   []string // in lines of their own
}

// Differences prints rows below a line with the names of where and of both sides. What is too long for a column is in
// lines below its row.
func Differences(w *Writer, where, expected, found string, list []Row) {
	const column = 15
	what, place := 0, len("layers  ")
	for _, r := range list {
		what, place = max(what, len([]rune(r.What))), max(place, min(len([]rune(r.Where)), 2*column))
	}
	line := func(r difference.Difference, verdict string) string {
		return strings.TrimRight(fmt.Sprintf("  %-*s %-*s %-*s %-*s %s", what, r.What, place, r.Where, column, r.Expected, column, r.Found, verdict), " ")
	}
	var rows []string
	for _, r := range list {
		var below []string
		cell := func(side, text string) string {
			switch {
			case text == "":
				return "-"
			case len([]rune(text)) > column:
				below = append(below, side+": "+text)
				return "(below)"
			}
			return text
		}
		r.Expected, r.Found = cell(expected, r.Expected), cell(found, r.Found)
		text := Wrap(line(r.Difference, r.Verdict), "      ")
		for _, b := range append(below, r.Below...) {
			text += "\n" + Wrap("      "+b, "        ")
		}
		rows = append(rows, text)
	}
	if len(rows) > 0 {
		w.Line("%s", line(difference.Difference{Where: where, Expected: expected, Found: found}, ""))
	}
	w.List(rows)
}
