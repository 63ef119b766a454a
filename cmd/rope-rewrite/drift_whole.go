package main

import (
	"fmt"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/drift"
)

// showWhole shows the paper's three curves: by shift, by token and by length.
func showWhole(w *cli.Writer, r *drift.Whole) {
	w.Line("%d layers, %d tokens in each text, %d texts. The whole model runs at each shift.", len(r.Layers), r.Tokens, r.Texts)
	for _, l := range r.Left {
		w.Line("%s", cli.Wrap(fmt.Sprintf("Layer %d is not measured: %s", l.Layer, l.Reason), "  "))
	}
	line := func(first string, cells ...string) {
		for _, c := range cells {
			first += fmt.Sprintf(" %11s", c)
		}
		w.Line("%s", strings.TrimRight(first, " "))
	}
	// cells are a row's numbers, each with the control's behind it.
	cells := func(row drift.WholeRow, numbers ...func(drift.WholeRow) float64) (list []string) {
		for _, number := range numbers {
			list = append(list, fmt.Sprintf("%.2e", number(row)))
			if row.Control != nil {
				list = append(list, fmt.Sprintf("%.2e", number(*row.Control)))
			}
		}
		return list
	}
	heads := func(names ...string) (list []string) {
		for _, name := range names {
			list = append(list, name)
			if r.Rows[0].Control != nil {
				list = append(list, "fresh")
			}
		}
		return list
	}
	w.Line("")
	w.Line("Change between a shift of all positions by %d and other shifts, summed over", r.Against)
	w.Line("layers and heads:")
	line(fmt.Sprintf("%-10s %7s", "product", "shift"), heads("weights", "first key")...)
	for _, row := range r.Rows {
		line(fmt.Sprintf("%-10s %7d", row.Arithmetic, row.Shift), cells(row,
			func(x drift.WholeRow) float64 { return x.Weights }, func(x drift.WholeRow) float64 { return x.FirstKey })...)
	}
	row := r.Shown()
	w.Line("")
	w.Line("In %s, between the shifts %d and %d:", row.Arithmetic, row.Shift, r.Against)
	w.Line("weights: the share of one key; first key: in texts that end at this token.")
	line(fmt.Sprintf("%-10s %7s", "", "token"), heads("weights", "first key")...)
	for i, n := range r.Lengths {
		line(fmt.Sprintf("%-10s %7d", "", n), cells(row,
			func(x drift.WholeRow) float64 { return x.Keys[n-1] }, func(x drift.WholeRow) float64 { return x.Lengths[i] })...)
	}
}
