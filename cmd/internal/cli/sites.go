package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/difference"
	"github.com/rope-rewrite/rope-rewrite/internal/ranges"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Replaced reports whether attention layers are written in other nodes than the project's ops.
func Replaced(report *rewrite.Report) bool {
	return slices.ContainsFunc(report.Sites, func(s rewrite.Site) bool { return s.Form != "" && s.Form != rewrite.Rotary })
}

// Sites prints the attention layers, runs of equal ones together.
func Sites(w *Writer, report *rewrite.Report) {
	verified, rotations := 0, report.Rotations()
	worst, original, cases := 0.0, 0.0, 0
	frequencies, originals := 0.0, 0.0 // relative errors of frequencies that the graph computes in each call
	for _, s := range report.Sites {
		if s.Proof != nil {
			if s.Status != rewrite.Rotation {
				verified++
			}
			worst, original, cases = max(worst, s.Proof.MaxError), max(original, s.Proof.OriginalError), max(cases, s.Proof.Cases)
			frequencies, originals = max(frequencies, s.Proof.FrequencyError), max(originals, s.Proof.OriginalFrequencyError)
		}
	}
	switch {
	case report.Again && report.Record != nil && Replaced(report):
		w.Line("%s", Wrap(fmt.Sprintf("%s: %d of %d attention layers were verified equal when rope-rewrite %s rewrote them, in other nodes than the op, by its record, which anyone can write.", report.Model, verified, len(report.Sites), report.Record.Tool), "  "))
	case report.Again && report.Record != nil:
		w.Line("%s", Wrap(fmt.Sprintf("%s: %d of %d attention layers have the op, verified equal when they were rewritten (rope-rewrite %s), by its record, which anyone can write.", report.Model, verified, len(report.Sites), report.Record.Tool), "  "))
	case report.Again:
		w.Line("%s", Wrap(fmt.Sprintf("%s: %d attention layers already have the op.", report.Model, len(report.Sites)), "  "))
	default:
		w.Line("%s", Wrap(fmt.Sprintf("%s: %d of %d attention layers verified equal%v.", report.Model, verified, len(report.Sites), report.Reach()), "  "))
	}
	if rotations > 0 {
		w.Line("%s", Wrap(fmt.Sprintf("The rotation alone was verified equal in %d.", rotations), "  "))
	}
	var lines []string
	for i := 0; i < len(report.Sites); {
		first := report.Sites[i]
		last := i
		for last+1 < len(report.Sites) && DescribeSite(report.Sites[last+1]) == DescribeSite(first) {
			last++
		}
		lines = append(lines, Wrap("  "+ranges.Layers(ranges.Span(i, last))+": "+DescribeSite(first), "    "))
		i = last + 1
	}
	w.List(lines)
	if cases > 0 {
		w.Line("Largest error against float64 over %d kinds of input: %.1e (the original's", cases, worst)
		w.Line("own: %.1e).", original)
		for _, line := range exact(report) {
			w.Line("%s", Wrap(line, ""))
		}
		if frequencies > 0 {
			w.Line("%s", Wrap(fmt.Sprintf("The op was compared with the original's frequencies of each call. Their relative error against the formula is up to %.1e, the op's up to %.1e.", originals, frequencies), ""))
		}
		if slices.ContainsFunc(report.Sites, func(s rewrite.Site) bool { return s.Proof != nil && s.Proof.PaddedDiffer }) {
			w.Line("%s", Wrap("Padded tokens that see no key get zeros, unlike in the original. A test showed that no other token depends on them.", ""))
		}
		for _, s := range report.Sites {
			if s.Proof != nil && s.Proof.SkippedWhy != "" {
				w.Line("%s", Wrap(notAllRun(s.Proof), ""))
				break
			}
		}
	}
}

// ProvenWith says which runtime verified the layers, where one was named for it.
func ProvenWith(w *Writer, record *provenance.Record) {
	if record.ProvenWith != nil && len(record.Sites) > 0 {
		w.Line("Layers were verified with %v.", record.ProvenWith)
	}
}

// exact says for which calls masks and positions were compared without sampling.
func exact(report *rewrite.Report) (lines []string) {
	var all provenance.Exact // the most of one layer
	for _, s := range report.Sites {
		if s.Proof != nil {
			e := s.Proof.Exact
			all.Width, all.Rows, all.Calls = max(all.Width, e.Width), max(all.Rows, e.Rows), max(all.Calls, e.Calls)
		}
	}
	if all.Rows > 0 {
		lines = append(lines, fmt.Sprintf("The mask is the same in every call of up to %d tokens, with every padding (%d rows).", all.Width, all.Rows))
	}
	if all.Calls > 0 {
		lines = append(lines, fmt.Sprintf("Positions are the same in all %d calls of up to 8 tokens.", all.Calls))
	}
	reach := report.Reach()
	if reach.AnyLength > 0 {
		lines = append(lines, "By the formulas that the graph computes, both hold for any number of tokens"+map[bool]string{true: ".", false: fmt.Sprintf(" in %d layers.", reach.AnyLength)}[len(reach.Limited) == 0])
	}
	for _, l := range reach.Limited {
		if l.Why == "" {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: known for up to %d tokens, compared by a sample beyond: %s.", "L"+LayersText(l.Layers)[1:], l.Tokens, l.Why))
	}
	return lines
}

// notAllRun says what was not tried because ONNX Runtime does not run the original so.
func notAllRun(p *rewrite.Proof) string {
	var list []string
	if p.Skipped > 0 {
		list = append(list, fmt.Sprintf("%d of these were run with one row instead of several", p.Skipped))
	}
	if p.LongestCall > 0 {
		list = append(list, fmt.Sprintf("no call had more than %d new tokens", p.LongestCall))
	}
	text := strings.Join(list, ", and ")
	return strings.ToUpper(text[:1]) + text[1:] + ", because ONNX Runtime runs the original only in this way: " + p.SkippedWhy
}

// DescribeSite says what an attention layer is, or why it is unchanged.
func DescribeSite(s rewrite.Site) string {
	if s.Scope != "" {
		where := short.Name(s.Scope)
		s.Scope = ""
		return "in " + where + ": " + DescribeSite(s)
	}
	if s.Proof == nil && !s.RotationOnly && s.Status == rewrite.Unchanged {
		return "unchanged: " + s.Reason
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
		text += "rotated by the model's own nodes"
	case s.RotaryDim == 0 && s.Distance != "":
		text += s.Distance
	case s.RotaryDim == 0:
		text += "no rotation"
	case s.Theta != 0:
		text += fmt.Sprintf("rotary %d %s, theta %g", s.RotaryDim, s.Layout, s.Theta)
		if s.Scaling != "" {
			text += " (already scaled by " + s.Scaling + ")"
		}
	default:
		text += fmt.Sprintf("rotary %d %s, scaled frequencies", s.RotaryDim, s.Layout)
	}
	if s.Attention != nil && s.Attention.Encoding.Turning() < s.RotaryDim/2 {
		text += fmt.Sprintf(", %d of %d pairs turn", s.Attention.Encoding.Turning(), s.RotaryDim/2)
	}
	if s.Attention != nil && slices.Contains(s.Attention.Encoding.Senses(), -1) {
		text += ", pairs that rotate the other way"
	}
	if s.Attention != nil {
		switch l := s.Attention.Encoding.LengthDependent; {
		case l.NTK > 0:
			text += fmt.Sprintf(", dynamic NTK (factor %g) in calls beyond %d tokens", l.NTK, l.Trained)
		case l.Trained > 0:
			text += fmt.Sprintf(", other frequencies beyond %d tokens", l.Trained)
		}
	}
	if s.Attention != nil && s.Attention.Encoding.Axes != nil {
		text += ", " + s.Attention.Encoding.DescribeAxes()
	}
	if s.RotaryDim > 0 && s.Distance != "" {
		text += ", " + s.Distance
	}
	if s.AfterRotation != "" {
		text += ", " + s.AfterRotation
	}
	switch s.Positions {
	case "":
	case provenance.ByIndex:
		text += ", positions computed by the graph"
	default:
		text += ", positions computed by the graph, not by index"
	}
	if s.RotationOnly {
		if s.Status == rewrite.Rotation {
			return text + "; only its rotation is replaced, by the op " + customop.RotarySpec.Name + ": " + s.Reason
		}
		return text + "; only its rotation is rewritten: " + s.Reason
	}
	cache := s.Cache
	switch {
	case cache == "none":
		cache = "no"
	case s.Attention != nil && s.Attention.Cache == rope.Raw:
		cache += " raw" // keys un-rotated
	}
	text += fmt.Sprintf(", %s, %s cache", s.Mask, cache)
	switch {
	case s.Status == rewrite.Unchanged:
		text += "; unchanged: " + s.Reason
	case s.CrossAttention:
		text += "; scalings, position maps, masks and --kv leave it unchanged"
	case s.ScoresOnly:
		text += "; masks and caches can be changed, the rotation cannot: " + s.Reason
	}
	return text
}

// Kilobytes says how large something small is.
func Kilobytes(bytes int) string { return fmt.Sprintf("%.1f KB", float64(bytes)/1000) }

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
		if len([]rune(r.Where)) > 2*column {
			below, r.Where = append(below, r.Where), "(below)"
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
