package modeldiff

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// compareClaims looks for something that a file says of a value's type or shape and that the expected model does not:
// ONNX Runtime believes it, computes with it ahead, and plans memory by it.
func compareClaims(was, is *canonical) (*FileDifference, error) {
	names := named(was, is)
	for value, list := range is.claims {
		for _, c := range list {
			list := was.claims[value]
			if t, ok := is.tensors[value]; ok {
				list = append(slices.Clip(list), t)
			}
			known := slices.ContainsFunc(list, func(k claim) bool {
				return follows(c.value, k.value, func(s, k onnx.Dim) bool { return is.once[s.Param] == 1 || k != unknown && names[s.Param] == k })
			})
			if !known && says(c.value) {
				first := differs("", fmt.Sprintf("it says that %q is %s, which does not follow", short.Name(c.name), typeText(c.value)))
				first.Told = true
				return first, nil
			}
		}
	}
	return nil, nil
}

var unknown = onnx.Dim{Value: onnx.UnknownDim}

// named are the dimensions that stand where a file has a name: the same one wherever it has that name.
func named(was, is *canonical) map[string]onnx.Dim {
	names := map[string]onnx.Dim{}
	for value, list := range is.claims {
		if len(was.claims[value]) == 0 {
			continue
		}
		k := was.claims[value][0].value
		for _, c := range list {
			for i, s := range c.value.Shape {
				d := unknown
				if i < len(k.Shape) {
					d = k.Shape[i]
				}
				if was, there := names[s.Param]; there && was != d {
					d = unknown
				}
				names[s.Param] = d
			}
		}
	}
	return names
}

// Ask returns an expected model that also gives out the values of its own graph of which a file says something: ONNX
// Runtime, saving it, says what it infers of them. A name of a dimension that the expected model does not have is a
// definition where it comes first, which says nothing; all else it must infer. A node that it takes out makes it write
// down what it infers.
func Ask(want, have *onnx.Model, say func(read int64) error) (*onnx.Model, error) {
	d := newDigester(say)
	d.share(want, have)
	asked := want.Clone()
	was, err := canonicalise(asked, d)
	if err != nil {
		return nil, err
	}
	is, err := canonicalise(have, d)
	if err != nil {
		return nil, err
	}
	names, known := onnx.Names{}, maps.Clone(was.once)
	names.Note(asked.Graph)
	for _, in := range slices.Backward(was.graphs) { // from outside to inside
		for _, n := range in.graph.Nodes {
			for _, name := range n.Outputs {
				if list := is.claims[in.values[name]]; name != "" && len(list) > 0 && constantOf(n) == nil {
					define(in.entry(name, list[0].value, in.graph == asked.Graph), list[0].value, known)
				}
			}
		}
		if read := hereRead(in.graph); read != "" {
			in.graph.InsertNode(nil, onnx.NewNode("Identity", []string{read}, []string{names.Fresh("nothing")}))
		}
	}
	return asked, nil
}

// hereRead is a value that a node of a graph reads.
func hereRead(g *onnx.Graph) string {
	for _, n := range g.Nodes {
		for _, name := range n.Inputs {
			if name != "" {
				return name
			}
		}
	}
	return ""
}

// entry is what a graph says of a value: as an output, which graphs inside nodes cannot have more of.
func (in within) entry(name string, said *onnx.ValueInfo, own bool) *onnx.ValueInfo {
	called := func(v *onnx.ValueInfo) bool { return v.Name == name }
	if i := slices.IndexFunc(in.graph.Outputs, called); i >= 0 {
		return in.graph.Outputs[i]
	}
	v := &onnx.ValueInfo{Name: name, Type: said.Type}
	i := slices.IndexFunc(in.graph.ValueInfo, called)
	switch {
	case i >= 0 && own:
		v = in.graph.ValueInfo[i].Clone()
	case i >= 0:
		return in.graph.ValueInfo[i]
	}
	if own {
		in.graph.AddOutput(v)
	} else {
		in.graph.ValueInfo = append(in.graph.ValueInfo, v)
	}
	return v
}

// define gives unknown dimensions of a value the names that are met first where a file says something of it.
func define(v, said *onnx.ValueInfo, known map[string]int) {
	var names []onnx.Dim
	first := false
	for i, s := range said.Shape {
		d := unknown
		if v.HasShape && i < len(v.Shape) {
			d = v.Shape[i]
		}
		if d == unknown && s.Param != "" && known[s.Param] == 0 {
			d, first, known[s.Param] = s, true, 1
		}
		names = append(names, d)
	}
	if first && (!v.HasShape || len(v.Shape) == len(names)) {
		v.Shape, v.HasShape = names, true
	}
}

// Told returns an expected model that says of its values what ONNX Runtime inferred of them.
func Told(want, saved *onnx.Model) *onnx.Model {
	told := want.Clone()
	told.Graph.ValueInfo = append(told.Graph.ValueInfo, saved.Graph.Outputs...)
	tell(told.Graph, saved.Graph)
	return told
}

// tell gives graphs inside nodes what their copies say, which are found by their nodes' outputs.
func tell(g, saved *onnx.Graph) {
	byName := map[string]*onnx.Node{}
	for _, n := range saved.Nodes {
		byName[name(n)] = n
	}
	for _, n := range g.Nodes {
		for _, a := range n.Attributes {
			if copied := byName[name(n)]; a.Type == onnx.AttrGraph && copied != nil && copied.Graph(a.Name) != nil {
				inner := copied.Graph(a.Name)
				a.Graph.ValueInfo = append(a.Graph.ValueInfo, inner.ValueInfo...)
				tell(a.Graph, inner)
			}
		}
	}
}

// says reports whether anything is said of a value.
func says(v *onnx.ValueInfo) bool { return v.Type != onnx.Undefined || v.HasShape || v.Other() != nil }

// follows reports whether what is said of a value follows from what is known; named says so of a dimension that has
// another name.
func follows(said, known *onnx.ValueInfo, named func(said, known onnx.Dim) bool) bool {
	if said.Type != known.Type || !bytes.Equal(said.Other(), known.Other()) {
		return false
	}
	if !said.HasShape {
		return true
	}
	return known.HasShape && slices.EqualFunc(said.Shape, known.Shape, func(s, k onnx.Dim) bool {
		return s == k || s.Param == "" && s.Value < 0 || s.Param != "" && named(s, k)
	})
}

// typeText is a value's type and shape.
func typeText(v *onnx.ValueInfo) string {
	if other := v.Other(); other != nil {
		return fmt.Sprintf("no tensor (%x)", sha256.Sum256(other))
	}
	text := v.Type.String()
	if v.HasShape {
		var dims []string
		for _, d := range v.Shape {
			dims = append(dims, d.String())
		}
		text += " [" + strings.Join(dims, ", ") + "]"
	}
	return text
}
