package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation"
)

// evalColumns is the number of lengths in a row.
const evalColumns = 5

// evalTables shows what was found: a table for each task, variants by lengths.
func evalTables(w *cli.Writer, r *evalResult) {
	var names []string
	for _, v := range r.Variants {
		names = append(names, v.Name)
		for _, m := range v.Methods {
			w.Line("%s", cli.Wrap(cli.MethodText(m), "  "))
		}
	}
	type key struct {
		variant string
		length  int
	}
	tables := map[string]map[key]string{}
	var tasks []string
	var lengths []int
	put := func(task, variant string, length int, text string) {
		if tables[task] == nil {
			tables[task], tasks = map[key]string{}, append(tasks, task)
		}
		if !slices.Contains(lengths, length) {
			lengths = append(lengths, length)
		}
		tables[task][key{variant, length}] = text
	}
	for _, c := range evaluation.OverDepths(r.Cells) {
		put(c.Task+", found with its interval of 95 %", c.Variant, c.Length, fmt.Sprintf("%.0f%% %.0f-%.0f", 100*c.Rate, 100*c.Low, 100*c.High))
	}
	for _, x := range r.Readings {
		half := ""
		if x.High > 0 {
			half = fmt.Sprintf("±%.2g", (x.High-x.Low)/2)
		}
		put("perplexity", x.Variant, x.Length, fmt.Sprintf("%.4g%s", x.Perplexity, half))
		put("perplexity of the last 512 tokens", x.Variant, x.Length, fmt.Sprintf("%.4g", x.Last))
	}
	slices.Sort(lengths)
	for _, task := range tasks {
		for from := 0; from < len(lengths); from += evalColumns {
			some := lengths[from:min(from+evalColumns, len(lengths))]
			w.Line("")
			w.Line("%s", task)
			head := fmt.Sprintf("%-20s", "")
			for _, l := range some {
				head += fmt.Sprintf("%12s", evaluation.Tokens(l))
			}
			w.Line("%s", head)
			for _, name := range names {
				line := fmt.Sprintf("%-20s", shortName(name, 20))
				for _, l := range some {
					line += fmt.Sprintf("%12s", tables[task][key{name, l}])
				}
				w.Line("%s", strings.TrimRight(line, " "))
			}
		}
	}
	for _, c := range r.Checks {
		verdict := "holds"
		if !c.Holds {
			verdict = "DOES NOT HOLD"
		}
		w.Line("%s", cli.Wrap(fmt.Sprintf("%s %s for %s: %s.", c.Check, verdict, c.Variant, c.Found), "  "))
	}
}

// shortName fits a variant's name into a column.
func shortName(name string, width int) string {
	name = evaluation.ShortName(name)
	if letters := []rune(name); len(letters) >= width {
		name = string(letters[:width-2]) + "…"
	}
	return name
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
		t := evaluation.Title{Name: v.Name}
		for _, m := range v.Methods {
			t.Methods = append(t.Methods, cli.MethodText(m))
		}
		titles = append(titles, t)
	}
	return evaluation.WriteReport(e.output, b.Bytes(), r.Summary, titles)
}
