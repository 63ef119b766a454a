package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/internal/ranges"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// print writes a result as JSON or as text; warnings of the text form go to stderr.
func (c *common) print(stdout, stderr io.Writer, report *rewrite.Report, text func(*writer)) error {
	if c.json {
		return printJSON(stdout, report)
	}
	var warnings []string
	for _, w := range report.Warnings {
		warnings = append(warnings, wrap("warning: "+w, "  "))
	}
	(&writer{out: stderr}).list(warnings)
	w := &writer{out: stdout}
	text(w)
	return w.err
}

// show writes a result as JSON or as text.
func (c *common) show(cmd *cobra.Command, value any, text func(*writer)) error {
	if c.json {
		return printJSON(cmd.OutOrStdout(), value)
	}
	w := &writer{out: cmd.OutOrStdout()}
	text(w)
	return w.err
}

func printJSON(stdout io.Writer, value any) error {
	encoder := json.NewEncoder(stdout)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// summary says what a rewrite did.
func (r *rewriteCommand) summary(w *writer, report *rewrite.Report) {
	sites(w, report)
	switch {
	case report.Record != nil:
		methods(w, report.Record.Edits)
		forms(w, report)
	case len(report.Edits) > 0:
		w.line("%s", wrap("Methods: "+strings.Join(report.Edits, ", ")+".", "  "))
	}
	if o := report.OperatorSet; o != nil {
		w.line("%s", wrap(fmt.Sprintf("Raised from version %d of the standard operators to %d; nodes written in another way: %d.", o.From, o.To, o.Converted), "  "))
	}
	if d := report.Definition; d != nil && len(d.Ops) > 0 {
		w.line("%s", wrap(fmt.Sprintf("Without the op library it runs by the definition that it carries (%s), slower than with it.", kilobytes(d.Bytes)), ""))
	}
	switch {
	case report.Output != "":
		w.line("%s", wrap(fmt.Sprintf("Wrote %s in %.1f s.", report.Output, report.Seconds), "  "))
		placed(w, report.Weights)
	case r.dryRun:
		w.line("Dry run: nothing written.")
	case report.Rewritten() == 0:
		w.line("Nothing written.")
	default:
		w.line("Nothing written: every site must be proven, or give --allow-partial.")
	}
	if len(report.Edits) == 0 && report.Rewritten() > 0 {
		flags := methodFlags()
		if slices.ContainsFunc(report.Sites, func(s rewrite.Site) bool { return s.ScoresOnly }) {
			flags = "--" + rope.MaskAxis.String()
		}
		w.line("%s", wrap("The meaning is kept. It can be changed with "+flags+"; rope-rewrite methods lists how.", ""))
	}
}

// forms says how the sites are written where that is not the op.
func forms(w *writer, report *rewrite.Report) {
	type key struct {
		form   rewrite.Form
		reason string
	}
	layers := map[key][]int{}
	var keys []key
	for _, s := range report.Sites {
		if s.Form == "" {
			continue
		}
		k := key{s.Form, s.FormReason}
		if layers[k] == nil {
			keys = append(keys, k)
		}
		layers[k] = append(layers[k], s.Layer)
	}
	for _, k := range keys {
		switch where := ranges.Text(layers[k]); k.form {
		case rewrite.OwnNodes:
			w.line("%s", wrap(fmt.Sprintf("Layers %s keep the nodes of the model, where methods change constants and masks alone.", where), ""))
		case rewrite.Inlined:
			w.line("%s", wrap(fmt.Sprintf("Layers %s are the body of the op in plain ONNX operators: %s.", where, k.reason), ""))
		case rewrite.GroupQuery:
			w.line("%s", wrap(fmt.Sprintf("Layers %s are com.microsoft.GroupQueryAttention.", where), ""))
		}
	}
	if keys != nil {
		w.line("The model needs no library.")
	}
}

// replaced reports whether sites are written in other nodes than the op.
func replaced(report *rewrite.Report) bool {
	return slices.ContainsFunc(report.Sites, func(s rewrite.Site) bool { return s.Form != "" })
}

// sites prints the sites, runs of equal ones together.
func sites(w *writer, report *rewrite.Report) {
	proven := 0
	worst, original, cases := 0.0, 0.0, 0
	frequencies, originals := 0.0, 0.0 // errors of those that are computed anew in each call
	for _, s := range report.Sites {
		if s.Proof != nil {
			proven++
			worst, original, cases = max(worst, s.Proof.MaxError), max(original, s.Proof.OriginalError), max(cases, s.Proof.Cases)
			frequencies, originals = max(frequencies, s.Proof.FrequencyError), max(originals, s.Proof.OriginalFrequencyError)
		}
	}
	switch {
	case report.Again && report.Record != nil && replaced(report):
		w.line("%s", wrap(fmt.Sprintf("%s: %d of %d attention sites were proven equal when they were rewritten (rope-rewrite %s), into other nodes than the model's own.", report.Model, proven, len(report.Sites), report.Record.Tool), "  "))
	case report.Again && report.Record != nil:
		w.line("%s", wrap(fmt.Sprintf("%s: %d of %d attention sites hold the op, proven equal when they were rewritten (rope-rewrite %s).", report.Model, proven, len(report.Sites), report.Record.Tool), "  "))
	case report.Again:
		w.line("%s", wrap(fmt.Sprintf("%s: %d attention sites hold the op already.", report.Model, len(report.Sites)), "  "))
	default:
		w.line("%s", wrap(fmt.Sprintf("%s: %d of %d attention sites proven equal.", report.Model, proven, len(report.Sites)), "  "))
	}
	var lines []string
	for i := 0; i < len(report.Sites); {
		first := report.Sites[i]
		last := i
		for last+1 < len(report.Sites) && describe(report.Sites[last+1]) == describe(first) {
			last++
		}
		name := "layer " + ranges.Span(i, last)
		if last > i {
			name = "layers " + ranges.Span(i, last)
		}
		lines = append(lines, wrap("  "+name+": "+describe(first), "    "))
		i = last + 1
	}
	w.list(lines)
	if cases > 0 {
		w.line("Largest error against float64 over %d kinds of input: %.1e (the original's", cases, worst)
		w.line("own: %.1e).", original)
		if frequencies > 0 {
			w.line("%s", wrap(fmt.Sprintf("It was compared with the frequencies that the original has in each call. From their formula these are off by up to %.1e of themselves, the op's by %.1e.", originals, frequencies), ""))
		}
		if slices.ContainsFunc(report.Sites, func(s rewrite.Site) bool { return s.Proof != nil && s.Proof.PaddedDiffer }) {
			w.line("%s", wrap("Queries of padded tokens that see no key get zeros. The original gives them something else, and it was tried that no other token depends on that.", ""))
		}
		for _, s := range report.Sites {
			if s.Proof != nil && s.Proof.Skipped > 0 {
				w.line("%s", wrap(fmt.Sprintf("%d of these were run with one row in place of several, as ONNX Runtime runs the original no other way: %s", s.Proof.Skipped, s.Proof.SkippedWhy), ""))
				break
			}
		}
	}
}

// describe says what a site is, or why it is kept.
func describe(s rewrite.Site) string {
	if s.Scope != "" {
		where := s.Scope
		s.Scope = ""
		return "in " + where + ": " + describe(s)
	}
	if s.Proof == nil && !s.RotationOnly && s.Status == rewrite.Kept {
		return "kept: " + s.Reason
	}
	text := fmt.Sprintf("%d heads", s.Heads)
	if s.KVHeads != s.Heads {
		text += fmt.Sprintf(" (%d for keys)", s.KVHeads)
	}
	if s.HeadSize > 0 { // an op alone does not say it
		text += fmt.Sprintf(" of %d", s.HeadSize)
	}
	text += ", "
	switch {
	case s.CrossAttention:
		text += "cross-attention without rotation"
	case s.ScoresOnly:
		text += "turned by the model's own nodes"
	case s.RotaryDim == 0:
		text += "no rotation"
	case s.Theta != 0:
		text += fmt.Sprintf("rotary %d %s, theta %g", s.RotaryDim, s.Layout, s.Theta)
		if s.Scaling != "" {
			text += " (carries " + s.Scaling + " already)"
		}
	default:
		text += fmt.Sprintf("rotary %d %s, scaled frequencies", s.RotaryDim, s.Layout)
	}
	if s.Attention != nil && slices.Contains(s.Attention.Encoding.Senses(), -1) {
		text += ", pairs that turn the other way"
	}
	if s.Attention != nil {
		switch l := s.Attention.Encoding.LengthDependent; {
		case l.NTK > 0:
			text += fmt.Sprintf(", dynamic NTK (factor %g) in calls beyond %d tokens", l.NTK, l.Trained)
		case l.Trained > 0:
			text += fmt.Sprintf(", others beyond %d tokens", l.Trained)
		}
	}
	if s.Attention != nil && s.Attention.Encoding.Axes != nil {
		text += ", " + s.Attention.Encoding.DescribeAxes()
	}
	if s.AfterRotation != "" {
		text += ", " + s.AfterRotation
	}
	if s.RotationOnly {
		return text + "; its rotation alone is changed, the attention stays: " + s.Reason
	}
	cache := s.Cache
	if cache == "none" {
		cache = "no"
	}
	text += fmt.Sprintf(", %s, %s cache", s.Mask, cache)
	switch {
	case s.Status == rewrite.Kept:
		text += "; kept: " + s.Reason
	case s.CrossAttention:
		text += "; scalings, position maps, masks and --kv leave it as it is"
	case s.ScoresOnly:
		text += "; masks and caches can be changed, the rotation cannot: " + s.Reason
	}
	return text
}

// kilobytes says how large something small is.
func kilobytes(bytes int) string { return fmt.Sprintf("%.1f KB", float64(bytes)/1000) }
