package cli

import (
	"fmt"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/ranges"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Methods prints what was done, with every parameter.
func Methods(w *Writer, edits []provenance.Edit) {
	var lines []string
	for _, d := range edits {
		lines = append(lines, Wrap("  "+MethodText(d), "    "))
	}
	if len(lines) > 0 {
		w.Line("Methods:")
	}
	w.List(lines)
}

// sources says of parameters where their values came from; given ones need no word.
var sources = []struct {
	from rope.Source
	text string
}{
	{rope.Given, ""},
	{rope.FromContext, "from --context "},
	{rope.Configuration, "from config.json "},
	{rope.Measured, "of the graph "},
	{rope.Computed, "computed "},
	{rope.Default, "by default "},
}

// MethodText is one edit: "scaling yarn on layers 0-29: factor 4; by default …".
func MethodText(d provenance.Edit) string {
	name, _, _ := strings.Cut(d.Given, ":")
	var parts []string
	for _, source := range sources {
		var list []string
		for _, s := range d.Settings {
			if s.From == source.from {
				list = append(list, s.Name+" "+ValueText(s.Value))
			}
		}
		if len(list) > 0 {
			parts = append(parts, source.text+strings.Join(list, ", "))
		}
	}
	text := d.What + " " + name + " on " + LayersText(d.Layers)
	if d.Note != "" {
		text += ", " + d.Note
	}
	if len(parts) == 0 {
		return text
	}
	return text + ": " + strings.Join(parts, "; ")
}

// ValueText shortens lists: there is one number for each pair of channels.
func ValueText(v rope.Value) string {
	list := v.Numbers()
	if v.Kind() == rope.Reals && len(list) > 4 {
		return fmt.Sprintf("[%g;%g;…;%g] (%d numbers)", list[0], list[1], list[len(list)-1], len(list))
	}
	if v.Kind() == rope.Real {
		return fmt.Sprintf("%.7g", list[0])
	}
	return v.String()
}

// LayersText is "layer 3" or "layers 0-3,7".
func LayersText(list []int) string { return ranges.Layers(ranges.Text(list)) }
