package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/ranges"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// summary says what a rewrite did.
func (r *rewriteCommand) summary(w *cli.Writer, report *rewrite.Report) {
	cli.Sites(w, report)
	switch {
	case report.Record != nil:
		cli.Methods(w, report.Record.Edits)
		forms(w, report)
		cli.ProvenWith(w, report.Record)
	case len(report.Edits) > 0:
		w.Line("%s", cli.Wrap("Methods: "+strings.Join(report.Edits, ", ")+".", "  "))
	}
	if o := report.OperatorSet; o != nil {
		w.Line("%s", cli.Wrap(fmt.Sprintf("Converted from opset %d to opset %d; nodes changed: %d.", o.From, o.To, o.Converted), "  "))
	}
	if d := report.Fallback; d != nil && len(d.Ops) > 0 {
		w.Line("%s", cli.Wrap(fmt.Sprintf("Without the op library the model still runs, more slowly, on its built-in fallback (%s).", cli.Kilobytes(d.Bytes)), ""))
	}
	switch {
	case report.Output != "":
		w.Line("%s", cli.Wrap(fmt.Sprintf("Wrote %s in %.1f s.", report.Output, report.Seconds), "  "))
		cli.Placed(w, report.Weights)
	case r.dryRun:
		w.Line("Dry run: nothing written.")
	case report.Replaced() == 0:
		w.Line("Nothing written.")
	case report.Unproven() == 0:
		w.Line("Nothing written: --require-any-length asks for layers that are known for any\nnumber of tokens.")
	default:
		w.Line("Nothing written: some layers are not verified; --allow-partial writes anyway.")
	}
	if len(report.Edits) == 0 && report.Replaced() > 0 {
		flags := cli.MethodFlags()
		if slices.ContainsFunc(report.Sites, func(s rewrite.Site) bool { return s.ScoresOnly }) {
			flags = "--" + rope.MaskAxis.String()
		}
		if report.Rewritten() == 0 {
			flags = "--" + rope.ScalingAxis.String()
		}
		w.Line("%s", cli.Wrap("The model's output is unchanged. Change it with "+flags+"; rope-rewrite methods lists them.", ""))
	}
}

// forms says how the attention layers are written where that is not the op.
func forms(w *cli.Writer, report *rewrite.Report) {
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
			w.Line("%s", cli.Wrap(fmt.Sprintf("Layers %s still use the model's own nodes; methods change only constants and masks there.", where), ""))
		case rewrite.Inlined:
			w.Line("%s", cli.Wrap(fmt.Sprintf("Layers %s are inlined in standard ONNX operators: %s.", where, k.reason), ""))
		case rewrite.Rotary:
			w.Line("%s", cli.Wrap(fmt.Sprintf("Layers %s have the op %s in place of their rotation; the attention keeps the model's own nodes.", where, customop.RotarySpec.Name), ""))
		case rewrite.GroupQuery:
			w.Line("%s", cli.Wrap(fmt.Sprintf("Layers %s are written as com.microsoft.GroupQueryAttention.", where), ""))
		}
	}
	if cli.Replaced(report) {
		w.Line("The model needs no op library.")
	}
}
