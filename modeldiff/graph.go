package modeldiff

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
)

// entry is a thing with a name, as text.
type entry struct{ name, text string }

// changes lists what is not the same in two lists, in the order of the first and then
// of the second.
func changes(a, b []entry) []Change {
	out := []Change{}
	other := map[string]string{}
	for _, e := range b {
		other[e.name] = e.text
	}
	for _, e := range a {
		if text, ok := other[e.name]; !ok || text != e.text {
			out = append(out, Change{e.name, e.text, text})
		}
		delete(other, e.name)
	}
	for _, e := range b {
		if _, left := other[e.name]; left {
			out = append(out, Change{Name: e.name, B: e.text})
		}
	}
	return out
}

// values lists inputs or outputs with their types and shapes.
func values(list []*onnx.ValueInfo) (out []entry) {
	for _, v := range list {
		out = append(out, entry{v.Name, typeText(v)})
	}
	return out
}

func opsets(m *onnx.Model) (out []entry) {
	for _, o := range m.Opsets() {
		out = append(out, entry{cmp.Or(o.Domain, "ai.onnx"), fmt.Sprint(o.Version)})
	}
	return out
}

// metadata lists what stands in the model's metadata, but for the record of a rewrite:
// methods says what that is about.
func metadata(m *onnx.Model) (out []entry) {
	for key, value := range m.Metadata() {
		if key != provenance.Key {
			out = append(out, entry{key, value})
		}
	}
	return out
}

// methods lists what a rewrite was asked for, by the record that it left, with every
// parameter that it used.
func (d *Report) methods(m *onnx.Model) (out []entry) {
	record, err := provenance.Read(m)
	if errors.Is(err, provenance.ErrNone) {
		return nil
	}
	if err != nil {
		d.Notes = append(d.Notes, fmt.Sprintf("the methods of %s are unknown: %v", m.Path, err))
		return nil
	}
	for _, e := range record.Edits {
		name := e.What
		if len(e.Layers) > 0 && len(e.Layers) < record.Layers() {
			name += fmt.Sprintf(" on layers %v", e.Layers)
		}
		text := e.Given
		var settings []string
		for _, s := range e.Settings {
			settings = append(settings, fmt.Sprintf("%s=%v", s.Name, s.Value))
		}
		if len(settings) > 0 {
			text += " (" + strings.Join(settings, ", ") + ")"
		}
		if at := slices.IndexFunc(out, func(o entry) bool { return o.name == name }); at >= 0 {
			out[at].text += "; " + text // of one axis, in the order in which they are applied
			continue
		}
		out = append(out, entry{name, text})
	}
	out = append(out, entry{"target", record.Target})
	var defined []string
	for _, f := range definition.Of(m) {
		defined = append(defined, f.Name)
	}
	if defined != nil {
		out = append(out, entry{"fallback", strings.Join(defined, ", ")})
	}
	return out
}

// countNodes counts the nodes of each op of which there is another number, in the
// model's graph, the graphs inside nodes and the model's functions.
func countNodes(models [2]*onnx.Model) []Count {
	counts := map[string]*Count{}
	for i, m := range models {
		each := func(n *onnx.Node) {
			op := n.OpType
			if spec, known := customop.SpecOf(n.OpType); known && n.Domain == customop.Domain {
				op = spec.Name
			}
			if n.Domain != "" && n.Domain != "ai.onnx" {
				op = n.Domain + " " + op
			}
			c := counts[op]
			if c == nil {
				c = &Count{Op: op}
				counts[op] = c
			}
			if i == 0 {
				c.A++
			} else {
				c.B++
			}
		}
		for n := range m.Graph.AllNodes() {
			each(n)
		}
		for _, f := range m.Functions {
			if f.Domain == customop.Domain {
				continue // the fallback of ops that are counted themselves
			}
			for n := range (&onnx.Graph{Nodes: f.Nodes}).AllNodes() {
				each(n)
			}
		}
	}
	out := []Count{}
	for _, op := range slices.Sorted(maps.Keys(counts)) {
		if c := *counts[op]; c.A != c.B {
			out = append(out, c)
		}
	}
	return out
}

// external counts the bytes of constants in external data.
func external(m *onnx.Model) (total int64) {
	for _, c := range constants(m) {
		if _, _, _, outside := c.tensor.External(); outside {
			total += max(0, c.tensor.ByteLen())
		}
	}
	return total
}
