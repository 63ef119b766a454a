package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"os"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/validate"
)

// agreement shows how well the logits agree, and what rounding alone does to the original's.
func agreement(w *cli.Writer, r *validate.Report) {
	w.Line("")
	w.Line("%-31s %9s %9s %7s %7s %10s", "", "mean", "KL, nats", "top-1", "top-5", "rounding")
	for _, c := range r.Cases {
		rounding := ""
		if c.Rounding > 0 {
			rounding = fmt.Sprintf("%.1e", c.Rounding)
		}
		w.Line("%-31s %9.1e %9.1e %6.1f%% %6.1f%% %10s", c.Name, c.Mean, c.KL, 100*c.Top1, 100*c.Top5, rounding)
	}
	for _, c := range r.Cases {
		if c.First >= 0 {
			w.Text("", "%s: the greedy next token first differs at token %d.", c.Name, c.First)
		}
	}
	w.Text("", "Rounding is the original against itself, computed in another way, as a share of the range.")
	costs(w, r)
}

// costs shows what caches of another element type cost, and products of bfloat16.
func costs(w *cli.Writer, r *validate.Report) {
	if r.CacheType == "" && !r.Fast {
		return
	}
	w.Line("")
	var text, cost string
	advice := "Some channels of its keys may be much larger than others. Use --kv with type=float16, or leave the type."
	switch {
	case r.FixedScales:
		text = fmt.Sprintf("Its caches hold %s with fixed scales, and attention reads all keys and values from them. So it is compared with the original whose attention reads them rounded alike.", r.CacheType)
		cost = "the smaller caches cost"
		advice = "The scales may be made of texts unlike these, or some channels may be much larger than others. Measure them on more text, with rope-rewrite scales --per-channel, or leave the type."
	case r.CacheType != "":
		text = fmt.Sprintf("Its caches hold %s. So it is compared with the original whose caches are rounded alike between calls.", r.CacheType)
		cost = "the smaller caches cost"
	}
	if r.Fast {
		text = strings.TrimSpace(text + " Its precision is fast: prompts are multiplied in bfloat16, where the CPU does that. So its logits are compared without that.")
		cost = "precision fast costs here"
	}
	if r.Fast && r.CacheType != "" {
		cost = "both cost here"
	}
	if len(r.Cases) == 0 || r.Cases[0].Cost == nil {
		w.Text("", "%s", text+" What that costs is not shown beside the methods; rope-rewrite eval compares two models with the same methods.")
		return
	}
	w.Text("", "%s", text+" This is what "+cost+", beside the original as it is:")
	w.Line("%-31s %9s %9s %7s %7s", "", "mean", "KL, nats", "top-1", "top-5")
	for _, c := range r.Cases {
		if k := c.Cost; k != nil {
			w.Line("%-31s %9.1e %9.1e %6.1f%% %6.1f%%", c.Name, k.Mean, k.KL, 100*k.Top1, 100*k.Top5)
		}
	}
	if c := r.Costly(); c != nil && r.CacheType != "" {
		w.Text("", "COSTLY: %s loses %.2g nats a token by its %s caches, more than the %g that are usual at most. %s", c.Name, c.Cost.KL, r.CacheType, validate.CostlyKL, advice)
	}
}

// methods shows what a model has that changes its output, and what that does to short rows: those that it does not
// change must have the original's logits.
func methods(w *cli.Writer, list []provenance.Edit) {
	w.Line("")
	if len(list) == 0 {
		w.Line("Its record says that the original's methods were removed.")
	} else {
		w.Line("It has methods that the original does not have:")
	}
	for _, m := range list {
		w.Text("    ", "  %s", cli.MethodText(m))
	}
	for _, m := range list {
		switch name, _, _ := strings.Cut(m.Given, ":"); {
		case m.What == "positions" && name == "string":
			w.Text("", "STRING changes nothing in rows of at most %s tokens.", cli.ValueText(m.Setting("shift")))
		case m.What == "scaling" && name == "yarn":
			w.Line("YaRN changes rows of every length.")
		}
	}
}

// asClaimed says what shows that a model has its methods.
func asClaimed(r *validate.Report) string {
	text := "AS CLAIMED"
	if n := len(r.Claim.Layers); n > 0 {
		text += fmt.Sprintf(": each of %d attention layers computes its method, by a float64 reference on what it read", n)
	}
	largest, compared := 0.0, false
	for _, c := range r.Cases {
		if c.Expected != nil {
			largest, compared = max(largest, c.Expected.Difference/c.Range), true
		}
	}
	if compared {
		text += fmt.Sprintf("; the logits equal those of the original with these methods, within %.1e of the range", largest)
	}
	text += "."
	if r.Same {
		text += " On these inputs the logits also equal the original's."
	}
	return text
}

// offLayers names the first attention layer that does not compute what its record says.
func offLayers(w *cli.Writer, c *validate.Claim) {
	wrong := 0
	for _, l := range c.Layers {
		if l.Holds {
			continue
		}
		if wrong++; wrong == 1 {
			w.Line("%s", cli.Wrap(fmt.Sprintf("Layer %d (%s) is the first that is wrong: its error is %.1e, a plain implementation's %.1e. The worst number of its output %v is %.6g instead of %.6g: row %d, head %d, token %d at position %d, channel %d.",
				l.Layer, short.Name(l.Node), l.Error, l.Plain, l.Shape, l.Worst.Got, l.Worst.Want, l.Worst.Row, l.Worst.Head, l.Worst.Token, l.Worst.Position, l.Worst.Channel), "  "))
		}
	}
	if wrong > 1 {
		w.Line("%d of %d attention layers are wrong.", wrong, len(c.Layers))
	}
}

//go:embed validate.html
var validatePage string

// writeValidation writes the comparison as one page.
func writeValidation(path string, r *validate.Report) error {
	t, err := template.New("validate").Funcs(template.FuncMap{
		"text":  func(r *validate.Report) string { return cli.Text(func(w *cli.Writer) { verdict(w, r) }) },
		"name":  func(text string) string { return cli.Quote(short.Name(text)) },
		"title": func(v validate.Verdict) string { return strings.ToUpper(string(v[:1])) + string(v[1:]) },
		"e":     func(x float64) string { return fmt.Sprintf("%.1e", x) },
	}).Parse(validatePage)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, r); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o666)
}
