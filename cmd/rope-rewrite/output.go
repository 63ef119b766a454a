package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// writer prints and remembers the first error.
type writer struct {
	out io.Writer
	err error
}

func (w *writer) line(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.out, format+"\n", args...)
	}
}

// print writes a result as JSON or as text; warnings of the text form go to stderr.
func (c *common) print(stdout, stderr io.Writer, report *rewrite.Report, text func(*writer)) error {
	if c.json {
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(report)
	}
	for _, w := range report.Warnings {
		fmt.Fprintln(stderr, wrap("warning: "+w, "  "))
	}
	w := &writer{out: stdout}
	text(w)
	return w.err
}

// summary says what a rewrite did.
func (r *rewriteCommand) summary(w *writer, report *rewrite.Report) {
	sites(w, report)
	if len(report.Edits) > 0 {
		w.line("Methods: %s.", strings.Join(report.Edits, ", "))
	}
	switch {
	case report.Output != "":
		w.line("Wrote %s in %.1f s.", report.Output, report.Seconds)
	case r.dryRun:
		w.line("Dry run: nothing written.")
	case report.Rewritten() == 0:
		w.line("Nothing written.")
	default:
		w.line("Nothing written: every site must be proven, or give --allow-partial.")
	}
	if len(report.Edits) == 0 && report.Rewritten() > 0 {
		w.line("The meaning is kept. It can be changed with --scaling yarn, linear or theta and")
		w.line("--positions string; rope-rewrite --help shows how.")
	}
}

// sites prints the sites, runs of equal ones on one line.
func sites(w *writer, report *rewrite.Report) {
	w.line("%s: %d of %d attention sites proven equal.", report.Model, report.Rewritten(), len(report.Sites))
	for i := 0; i < len(report.Sites); {
		first := report.Sites[i]
		last := i
		for last+1 < len(report.Sites) && describe(report.Sites[last+1]) == describe(first) {
			last++
		}
		name := fmt.Sprintf("layer %d", i)
		if last > i {
			name = fmt.Sprintf("layers %d-%d", i, last)
		}
		w.line("%s", wrap("  "+name+": "+describe(first), "    "))
		i = last + 1
	}
	worst, original, cases := 0.0, 0.0, 0
	for _, s := range report.Sites {
		if s.Proof != nil {
			worst, original, cases = max(worst, s.Proof.MaxError), max(original, s.Proof.OriginalError), s.Proof.Cases
		}
	}
	if cases > 0 {
		w.line("Largest error against float64 over %d kinds of input: %.1e (the original's", cases, worst)
		w.line("own: %.1e). Queries that see no key are left out: they carry no meaning.", original)
	}
}

// describe says what a site is, or why it is kept.
func describe(s rewrite.Site) string {
	if s.Proof == nil {
		return "kept: " + s.Reason
	}
	text := fmt.Sprintf("%d heads", s.Heads)
	if s.KVHeads != s.Heads {
		text += fmt.Sprintf(" (%d for keys)", s.KVHeads)
	}
	text += fmt.Sprintf(" of %d, ", s.HeadSize)
	switch {
	case s.RotaryDim == 0:
		text += "no rotation"
	case s.Theta != 0:
		text += fmt.Sprintf("rotary %d %s, theta %g", s.RotaryDim, s.Layout, s.Theta)
	default:
		text += fmt.Sprintf("rotary %d %s, scaled frequencies", s.RotaryDim, s.Layout)
	}
	text += fmt.Sprintf(", %s, %s cache", s.Mask, s.Cache)
	if s.Status == rewrite.Kept {
		text += "; kept: " + s.Reason
	}
	return text
}

// wrap breaks a text at 80 columns; lines after the first begin with indent.
func wrap(text, indent string) string {
	var out strings.Builder
	width := 0
	lead := text[:len(text)-len(strings.TrimLeft(text, " "))]
	out.WriteString(lead)
	width = len(lead)
	for i, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case i == 0:
		case width+1+n > 80:
			out.WriteString("\n" + indent)
			width = len(indent)
		default:
			out.WriteByte(' ')
			width++
		}
		out.WriteString(word)
		width += n
	}
	return out.String()
}

// progress shows what is being done on a terminal, once it takes longer than a second.
type progress struct {
	out   io.Writer
	start time.Time
	shown bool
	on    bool
}

func newProgress(out io.Writer) *progress {
	f, ok := out.(*os.File)
	return &progress{out: out, start: time.Now(), on: ok && term.IsTerminal(int(f.Fd()))}
}

func (p *progress) say(what string) {
	if p.on && time.Since(p.start) > time.Second {
		fmt.Fprintf(p.out, "\r\x1b[K%s …", what)
		p.shown = true
	}
}

func (p *progress) done() {
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
