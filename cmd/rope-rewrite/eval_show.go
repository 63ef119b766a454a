package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation"
	"github.com/rope-rewrite/rope-rewrite/internal/version"
)

// nameColumn is the width of the names in a table; cells take the rest of a line of 80.
const nameColumn, lineColumns = 20, 80

// evalTable is what one task or reading shows: variants by lengths.
type evalTable struct {
	title string
	width int // of a column
	cells map[evalPlace]string
}

type evalPlace struct {
	variant string
	length  int
}

// evalTables shows what was found: a table for each task, variants by lengths.
func evalTables(w *cli.Writer, r *evalResult) {
	var names []string
	for _, v := range r.Variants {
		names = append(names, v.Name)
		for _, m := range v.Methods {
			w.Line("%s", cli.Wrap(cli.MethodText(m), "  "))
		}
	}
	var tables []*evalTable
	var lengths []int
	put := func(title string, width int, variant string, length int, text string) {
		i := slices.IndexFunc(tables, func(t *evalTable) bool { return t.title == title })
		if i < 0 {
			i, tables = len(tables), append(tables, &evalTable{title, width, map[evalPlace]string{}})
		}
		if !slices.Contains(lengths, length) {
			lengths = append(lengths, length)
		}
		tables[i].cells[evalPlace{variant, length}] = text
	}
	for _, c := range evaluation.OverDepths(r.Cells) {
		put(c.Task+", "+c.What()+" with its 95 % interval", 12, c.Variant, c.Length, fmt.Sprintf("%.0f%% %.0f-%.0f", 100*c.Score, 100*c.Low, 100*c.High))
	}
	for _, m := range r.Means {
		put("mean of RULER's thirteen tasks with its 95 % interval", 12, m.Variant, m.Length, fmt.Sprintf("%.0f%% %.0f-%.0f", 100*m.Score, 100*m.Low, 100*m.High))
	}
	for _, x := range r.Readings {
		text := perplexityText(x.Perplexity)
		if x.High > 0 {
			text += fmt.Sprintf(" %s-%s", perplexityText(x.Low), perplexityText(x.High))
		}
		put("perplexity with its 95 % interval", 20, x.Variant, x.Length, text)
		if l := x.Loss; l != nil {
			put("nats a token lost beside "+names[0]+" on the same windows", 20, x.Variant, x.Length, lossText(*l))
		}
		put("perplexity of the last 512 tokens", 12, x.Variant, x.Length, perplexityText(x.Last))
	}
	slices.Sort(lengths)
	short := evaluation.ShortNames(names, nameColumn-1)
	for _, t := range tables {
		columns := (lineColumns - nameColumn) / t.width
		for some := range slices.Chunk(lengths, columns) {
			w.Line("")
			w.Line("%s", t.title)
			head := fmt.Sprintf("%-*s", nameColumn, "")
			for _, l := range some {
				head += fmt.Sprintf(" %*s", t.width-1, evaluation.Tokens(l))
			}
			w.Line("%s", head)
			for i, name := range names {
				line := fmt.Sprintf("%-*s", nameColumn, short[i])
				for _, l := range some {
					line += fmt.Sprintf(" %*s", t.width-1, t.cells[evalPlace{name, l}])
				}
				w.Line("%s", strings.TrimRight(line, " "))
			}
		}
	}
	for _, n := range r.Notes {
		w.Line("")
		w.Line("%s", cli.Wrap(n, "  "))
	}
	for _, c := range r.Checks {
		verdict := "holds"
		if !c.Holds {
			verdict = "DOES NOT HOLD"
		}
		w.Line("%s", cli.Wrap(fmt.Sprintf("%s %s for %s: %s.", c.Check, verdict, c.Variant, c.Found), "  "))
	}
}

// lossText is a mean with half of its interval.
func lossText(l evaluation.Loss) string {
	if l.Low == 0 && l.High == 0 {
		return fmt.Sprintf("%+.4f", l.Mean)
	}
	return fmt.Sprintf("%+.4f ±%.4f", l.Mean, l.High-l.Mean)
}

// perplexityText has four digits, and no exponent where a column has room.
func perplexityText(x float64) string {
	if x >= 1000 && x < 1e6 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.4g", x)
}

// write puts the results into the output folder.
func (e *evalCommand) write(r *evalResult, plan evaluation.Plan) error {
	if e.output == "" {
		return nil
	}
	var b bytes.Buffer
	if err := cli.PrintJSON(&b, r); err != nil {
		return err
	}
	var titles []evaluation.Title
	for _, v := range r.Variants {
		t := evaluation.Title{Name: v.Name, Model: v.Model}
		for _, m := range v.Methods {
			t.Methods = append(t.Methods, cli.MethodText(m))
		}
		titles = append(titles, t)
	}
	made := evaluation.Made{Command: strings.Join(append([]string{"rope-rewrite"}, os.Args[1:]...), " "), Version: version.This().String(), Date: time.Now().Format(time.DateOnly), Seed: r.Seed}
	return evaluation.WriteReport(e.output, b.Bytes(), r.Summary, titles, made)
}
