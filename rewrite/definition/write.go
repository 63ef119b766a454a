package definition

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// ErrUndefined says that a model's ops cannot be written as functions.
var ErrUndefined = errors.New("the op cannot be written in standard operators here")

// oldestIR is the first version of the file format that has functions.
const oldestIR = 8

// Write gives the model a function for each structure of its ops, in place of earlier
// functions. Nodes of the second and later structures get numbered names of the op, and all
// nodes get the attributes that the bodies read. It returns the functions; none for a model
// without the op. The model's ops have queries of four dimensions, and an element type that
// Serves allows.
//
// The error wraps ErrUndefined and says why there can be no functions; the model is then as
// Remove leaves it.
func Write(m *onnx.Model) ([]*onnx.Function, error) {
	list, err := write(m, func(spec customop.Spec, structures int) ([]string, error) {
		names := spec.OpTypes()
		if structures > len(names) {
			return nil, fmt.Errorf("its layers have %d different structures, more than the %d names of the op", structures, len(names))
		}
		return names, nil
	})
	if len(list) > 0 {
		m.RequireIR(oldestIR)
	}
	return list, err
}

// Draft is Write for ops that Inline will inline: there may be as many structures as ops, and
// names do not matter.
func Draft(m *onnx.Model) ([]*onnx.Function, error) {
	return write(m, func(spec customop.Spec, structures int) (names []string, _ error) {
		for i := range structures {
			names = append(names, fmt.Sprintf("%s_body_%d", spec.Name, i))
		}
		return names, nil
	})
}

// Inline replaces the ops by the bodies of their functions. Neither ops nor functions remain.
func Inline(m *onnx.Model) error {
	if _, err := m.Inline(Of(m)); err != nil {
		return err
	}
	Remove(m)
	m.RemoveOpset(customop.Domain)
	return nil
}

// write gives the model functions. names returns as many names of an op as it has structures, or
// more.
func write(m *onnx.Model, names func(spec customop.Spec, structures int) ([]string, error)) ([]*onnx.Function, error) {
	Remove(m)
	groups, err := groups(ops(m), func(*onnx.Node) bool { return false })
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUndefined, err)
	}
	structures := map[string]int{}
	for _, g := range groups {
		structures[g.spec().Name]++
	}
	named := map[string][]string{}
	for _, spec := range customop.Specs {
		if named[spec.Name], err = names(spec, structures[spec.Name]); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUndefined, err)
		}
	}
	var list []*onnx.Function
	for _, g := range groups {
		op := g.spec().Name
		f, err := g.function(named[op][0], m.Opset(""))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUndefined, err)
		}
		named[op] = named[op][1:]
		list = append(list, f)
	}
	for i, g := range groups {
		g.name(list[i])
	}
	m.Functions = append(m.Functions, list...)
	return list, nil
}

// Of lists the functions that a model has for the op.
func Of(m *onnx.Model) (list []*onnx.Function) {
	for _, f := range m.Functions {
		if defines(f) {
			list = append(list, f)
		}
	}
	return list
}

func defines(f *onnx.Function) bool { return f.Domain == customop.Domain }

// Serves returns an error, which wraps ErrUndefined, if functions of an opset cannot serve ops
// of an element type.
func Serves(opset int64, element onnx.DataType) error {
	if opset < castLike && ir.Is16Bit(element) {
		return fmt.Errorf("%w: the model is 16-bit and uses opset %d, and a fallback for other types than float32 needs opset %d; --opset %d (Options.Output.OperatorSet) converts it", ErrUndefined, opset, castLike, castLike)
	}
	return nil
}

// Remove removes the functions of the op from the model. Numbered nodes get the op's own
// name back.
func Remove(m *onnx.Model) {
	m.Functions = slices.DeleteFunc(m.Functions, defines)
	for _, n := range ops(m) {
		for _, spec := range customop.Specs {
			if slices.Contains(spec.OpTypes(), n.OpType) {
				n.OpType = spec.Name
			}
		}
	}
}

// Body returns the function for a single node of the op, under the name that the node has.
// flat says that query, key and value have three dimensions. opset is the version of the
// standard operators that the function is written against. The node gets the attributes
// that the body reads.
func Body(n *onnx.Node, flat bool, opset int64) (*onnx.Function, error) {
	list, err := groups([]*onnx.Node{n}, func(*onnx.Node) bool { return flat })
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUndefined, err)
	}
	f, err := list[0].function(n.OpType, opset)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUndefined, err)
	}
	list[0].name(f)
	return f, nil
}

// ops lists the nodes of the op, in the order of the graphs.
func ops(m *onnx.Model) (list []*onnx.Node) {
	for n := range m.Graph.AllNodes() {
		if n.Domain == customop.Domain {
			list = append(list, n)
		}
	}
	return list
}

// function writes the body of a group.
func (g *group) function(name string, opset int64) (*onnx.Function, error) {
	if opset < oldestOpset {
		return nil, fmt.Errorf("the fallback needs opset %d, but the model uses opset %d; --opset %d (Options.Output.OperatorSet) converts it", oldestOpset, opset, oldestOpset)
	}
	w := newBody(g, opset)
	if g.rotary.format != "" {
		w.rotary()
	} else {
		w.attention()
	}
	f := &onnx.Function{Name: name, Domain: customop.Domain, Opsets: []onnx.Opset{{Version: opset}}}
	for i := range g.inputs {
		f.Inputs = append(f.Inputs, g.spec().Inputs[i].Name)
	}
	for i := range g.outputs {
		f.Outputs = append(f.Outputs, g.spec().Outputs[i].Name)
	}
	f.Nodes = w.nodes(f.Outputs)
	for name := range w.refs {
		f.AttributeNames = append(f.AttributeNames, name)
	}
	for _, n := range g.nodes {
		for _, a := range n.Attributes {
			f.AttributeNames = append(f.AttributeNames, a.Name)
		}
	}
	slices.Sort(f.AttributeNames)
	f.AttributeNames = slices.Compact(f.AttributeNames)
	return f, nil
}

// name gives the nodes of a group the name of their function, and every attribute that its
// body reads: a runtime refuses a reference to one that is not there.
func (g *group) name(f *onnx.Function) {
	for _, n := range g.nodes {
		since := int64(1)
		if n.OpType = f.Name; f.Name != g.spec().Name {
			since = customop.NumberedSince
		}
		for _, a := range g.spec().Attributes {
			if slices.Contains(f.AttributeNames, a.Name) && n.Attribute(a.Name) == nil {
				if d := defaultOf(a); d != nil {
					n.SetAttribute(d)
					since = max(since, int64(a.Since))
				}
			}
		}
		if n.Int("spec_version", 1) < since {
			n.SetAttribute(onnx.IntAttr("spec_version", since))
		}
	}
}

// defaultOf is an attribute with its default.
func defaultOf(a customop.Attribute) *onnx.Attribute {
	switch a.Type {
	case "int":
		if n, err := strconv.ParseInt(a.Default, 10, 64); err == nil {
			return onnx.IntAttr(a.Name, n)
		}
	case "float":
		if x, err := strconv.ParseFloat(a.Default, 32); err == nil {
			return onnx.FloatAttr(a.Name, float32(x))
		}
	case "ints":
		return onnx.IntsAttr(a.Name)
	case "floats":
		return onnx.FloatsAttr(a.Name)
	}
	return nil
}
