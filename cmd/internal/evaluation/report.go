package evaluation

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"math"
	"path/filepath"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/figure"
	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// Title is a variant and what was done to its model.
type Title struct {
	Name    string
	Model   string
	Methods []string
}

// Made says how results came about.
type Made struct {
	Command string // as it was given
	Version string // of this program
	Date    string // 2006-01-02
	Seed    uint64
}

// picture is what can be drawn.
type picture interface {
	Write(w io.Writer, format string, theme figure.Theme) error
}

// named is a picture with the beginning of its files' names.
type named struct {
	name  string
	about string
	picture
}

// WriteReport writes results.json, pictures as PNG and SVG for light and dark pages, and
// report.html, which holds all of it.
func WriteReport(folder string, results []byte, s Summary, variants []Title, made Made) error {
	if err := configfile.Write(filepath.Join(folder, "results.json"), results, 0o644); err != nil {
		return err
	}
	page := struct {
		Made     Made
		Variants []Title
		Pictures []shown
		Cells    []Cell
		Means    []Mean
		Readings []Reading
	}{made, variants, nil, OverDepths(s.Cells), s.Means, s.Readings}
	for _, p := range pictures(s, variants) {
		of := shown{About: p.about}
		for _, theme := range []figure.Theme{figure.Light, figure.Dark} {
			for _, format := range []string{"png", "svg"} {
				var b bytes.Buffer
				if err := p.Write(&b, format, theme); err != nil {
					return err
				}
				if err := configfile.Write(filepath.Join(folder, fmt.Sprintf("%s-%v.%s", p.name, theme, format)), b.Bytes(), 0o644); err != nil {
					return err
				}
				if format == "svg" {
					url := "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(b.Bytes())
					if theme == figure.Light {
						of.Light = template.URL(url)
					} else {
						of.Dark = template.Srcset(url)
					}
				}
			}
		}
		page.Pictures = append(page.Pictures, of)
	}
	var b bytes.Buffer
	t, err := template.New("report").Funcs(template.FuncMap{
		"name":   func(text string) string { return short.Quote(short.Name(text)) },
		"full":   short.Quote,
		"tokens": Tokens, "percent": func(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) },
		"number": func(x float64) string { return fmt.Sprintf("%.4g", x) },
	}).Parse(reportPage)
	if err != nil {
		return err
	}
	if err := t.Execute(&b, page); err != nil {
		return err
	}
	return configfile.Write(filepath.Join(folder, "report.html"), b.Bytes(), 0o644)
}

// shown is a picture within the page.
type shown struct {
	About string
	Light template.URL
	Dark  template.Srcset // of one picture; as a URL its comma would be escaped
}

//go:embed report.html
var reportPage string

// pictures are a heat map for each task and variant with several depths, one of variants by
// lengths for each task, one of variants by tasks for each length, and the curves of perplexity.
func pictures(s Summary, variants []Title) (list []named) {
	var names []string
	for _, v := range variants {
		names = append(names, v.Name)
	}
	labels := ShortNames(names, math.MaxInt32)
	for i, label := range labels {
		labels[i] = short.Quote(short.Name(label)) // a variant is called after a file
	}
	files := fileNames(labels)
	var tasks []string
	for _, c := range s.Cells {
		if !slices.Contains(tasks, c.Task) {
			tasks = append(tasks, c.Task)
		}
	}
	for _, task := range tasks {
		table := func(cells []Cell, rows []string, row func(Cell) int) figure.HeatMap {
			lengths := lengthsOf(cells)
			h := figure.HeatMap{XLabel: "tokens", Y: rows, High: 1, Text: percent, Values: make([][]float64, len(rows))}
			for _, l := range lengths {
				h.X = append(h.X, Tokens(l))
			}
			for i := range h.Values {
				h.Values[i] = slices.Repeat([]float64{math.NaN()}, len(lengths))
			}
			for _, c := range cells {
				if i := row(c); i >= 0 {
					h.Values[i][slices.Index(lengths, c.Length)] = c.Score
				}
			}
			return h
		}
		of := slices.DeleteFunc(slices.Clone(s.Cells), func(c Cell) bool { return c.Task != task })
		h := table(OverDepths(of), labels, func(c Cell) int { return slices.Index(names, c.Variant) })
		h.Title = task + ": " + of[0].What()
		list = append(list, named{task, h.Title, h})
		depths := depthsOf(of)
		if len(depths) < 2 {
			continue
		}
		var rows []string
		for _, d := range depths {
			rows = append(rows, percent(d))
		}
		for i, name := range names {
			cells := slices.DeleteFunc(slices.Clone(of), func(c Cell) bool { return c.Variant != name })
			h := table(cells, rows, func(c Cell) int { return slices.Index(depths, c.Depth) })
			h.Title, h.YLabel = task+", "+labels[i]+": "+of[0].What(), "depth"
			list = append(list, named{task + "-" + files[i], h.Title, h})
		}
	}
	if len(tasks) > 1 {
		list = append(list, byTask(s.Cells, tasks, names, labels)...)
	}
	if len(s.Curves) > 0 {
		list = append(list, named{"perplexity", "perplexity by position", curves(s.Curves, names, labels)})
	}
	return list
}

// byTask are tables of variants by tasks, one for each length.
func byTask(cells []Cell, tasks, names, labels []string) (list []named) {
	for _, length := range lengthsOf(cells) {
		h := figure.HeatMap{Title: "share found at " + Tokens(length) + " tokens", X: tasks, Y: labels, High: 1, Text: percent, Values: make([][]float64, len(names))}
		for i := range h.Values {
			h.Values[i] = slices.Repeat([]float64{math.NaN()}, len(tasks))
		}
		for _, c := range OverDepths(cells) {
			if i := slices.Index(names, c.Variant); c.Length == length && i >= 0 {
				h.Values[i][slices.Index(tasks, c.Task)] = c.Score
			}
		}
		list = append(list, named{"tasks-" + Tokens(length), h.Title, h})
	}
	return list
}

func percent(v float64) string { return fmt.Sprintf("%.0f%%", 100*v) }

// curves draws the perplexity by position.
func curves(list []Curve, names, labels []string) figure.Lines {
	l := figure.Lines{Title: "perplexity by position", XLabel: "tokens", YLabel: "perplexity", TokensX: true, LogY: true}
	for _, c := range list {
		s := figure.Series{Name: c.Variant, Y: c.Perplexity}
		if i := slices.Index(names, c.Variant); i >= 0 {
			s.Name = labels[i]
		}
		for i := range c.Perplexity {
			s.X = append(s.X, (float64(i)+0.5)*float64(c.Block))
		}
		l.Series = append(l.Series, s)
	}
	return l
}

func lengthsOf(cells []Cell) (list []int) {
	for _, c := range cells {
		list = append(list, c.Length)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func depthsOf(cells []Cell) (list []float64) {
	for _, c := range cells {
		list = append(list, c.Depth)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
