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
func changes(a, b []entry) (out []Difference) {
	other := map[string]string{}
	for _, e := range b {
		other[e.name] = e.text
	}
	for _, e := range a {
		if text, ok := other[e.name]; !ok || text != e.text {
			out = append(out, Difference{Where: e.name, Expected: e.text, Found: text})
		}
		delete(other, e.name)
	}
	for _, e := range b {
		if _, left := other[e.name]; left {
			out = append(out, Difference{Where: e.name, Found: e.text})
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

// countNodes counts the nodes of each op in a model's graph, the graphs inside nodes and the model's functions.
func countNodes(m *onnx.Model) (out []entry) {
	counts := map[string]int{}
	each := func(g *onnx.Graph) {
		for n := range g.AllNodes() {
			op := n.OpType
			if spec, known := customop.SpecOf(n.OpType); known && n.Domain == customop.Domain {
				op = spec.Name
			}
			if domain(n.Domain) != "" {
				op = n.Domain + " " + op
			}
			counts[op]++
		}
	}
	each(m.Graph)
	for _, f := range m.Functions {
		if f.Domain != customop.Domain { // the fallback is of ops that are counted themselves
			each(&onnx.Graph{Nodes: f.Nodes})
		}
	}
	for _, op := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, entry{op, fmt.Sprint(counts[op])})
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
