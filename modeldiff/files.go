package modeldiff

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
)

// CompareInterfaces returns the first difference of the inputs and outputs of two files: in names, types, shapes and
// names of dimensions. Of an output a file may say more than was expected: CompareGraphs asks whether that follows.
func CompareInterfaces(want, have *onnx.Model) *FileDifference {
	return cmp.Or(compareInterface(want.Graph.Inputs, have.Graph.Inputs, true), compareInterface(want.Graph.Outputs, have.Graph.Outputs, false))
}

// CompareRest returns the first difference of two files beside inputs, outputs and what their graphs compute: the version
// of the format, metadata but for the record, functions. It also returns the functions of the fallback that the file
// lacks: it computes the same without, where the op's library is.
func CompareRest(want, have *onnx.Model) (first *FileDifference, dropped []string, err error) {
	if want.IRVersion != have.IRVersion {
		return differs("", "it has another version of ONNX's format").of(fmt.Sprint(want.IRVersion), fmt.Sprint(have.IRVersion)), nil, nil
	}
	if len(want.Training)+len(have.Training) > 0 {
		return differs("", "it has training information, which is not compared"), nil, nil
	}
	if list := changes(metadata(want), metadata(have)); len(list) > 0 {
		return differs("", "its metadata differ in "+short.Name(list[0].Where)), nil, nil
	}
	return compareFunctions(want, have)
}

// compareInterface compares inputs, or outputs. Of these the file may say more than was expected: CompareGraphs asks
// whether that follows.
func compareInterface(want, have []*onnx.ValueInfo, inputs bool) *FileDifference {
	was, is := values(want), values(have)
	name := func(list []entry, i int) string { return fmt.Sprintf("%q", short.Name(list[i].name)) }
	for i := range max(len(was), len(is)) {
		switch {
		case i >= len(was):
			return altered(name(is, i), "is unexpected among its inputs or outputs")
		case i >= len(is):
			return altered(name(was, i), "is missing among its inputs or outputs")
		case was[i].name != is[i].name:
			d := altered(name(is, i), "is in the place of "+name(was, i)+" among its inputs or outputs")
			has := func(list []entry, name string) bool {
				return slices.ContainsFunc(list, func(e entry) bool { return e.name == name })
			}
			d.Exchanged = has(was, is[i].name) && has(is, was[i].name)
			return d
		case was[i].text != is[i].text && (inputs || !follows(want[i], have[i], func(_, _ onnx.Dim) bool { return false })):
			return altered(name(is, i), "has another type").of(short.Name(was[i].text), short.Name(is[i].text))
		}
	}
	return nil
}

// compareFunctions compares the functions that nodes of a file can call with those of the expected model of the same
// names, by contents. A function of the model's own that the file lacks is a difference of its graph, if one.
func compareFunctions(want, have *onnx.Model) (first *FileDifference, dropped []string, err error) {
	d := newDigester(func(int64) error { return nil })
	was, is := newCanonical(want, d), newCanonical(have, d)
	expected, kept := map[functionKey]*onnx.Function{}, map[functionKey]bool{}
	for _, f := range want.Functions {
		expected[keyOf(f)] = f
	}
	other := definition.Unknown(have) // the others of the fallback were written by a version of rope-rewrite
	calls := callable(have)
	for _, f := range have.Functions {
		k := keyOf(f)
		fallback := k[0] == customop.Domain
		if !fallback && !calls[[2]string{k[0], k[1]}] {
			continue
		}
		name := "the function " + short.Name(f.Name)
		if fallback {
			name = "the fallback " + short.Name(f.Name)
		}
		if expected[k] == nil || kept[k] {
			return altered(name, "was added"), nil, nil
		}
		kept[k] = true
		same, err := sameFunctions(was, is, expected[k], f)
		if err != nil {
			return nil, nil, err
		}
		if !same && (!fallback || slices.Contains(other, f)) {
			first = differs(name, "is different")
			first.Altered = !fallback
			return first, nil, nil
		}
	}
	for _, f := range want.Functions {
		switch k := keyOf(f); {
		case kept[k]:
		case k[0] == customop.Domain:
			dropped = append(dropped, f.Name)
		case calls[[2]string{k[0], k[1]}]:
			return altered("the function "+short.Name(f.Name), "is missing"), nil, nil
		}
	}
	return nil, dropped, nil
}

// callable are the domains and ops of a model's nodes, those of its functions too.
func callable(m *onnx.Model) map[[2]string]bool {
	calls := map[[2]string]bool{}
	note := func(g *onnx.Graph) {
		for n := range g.AllNodes() {
			calls[[2]string{domain(n.Domain), n.OpType}] = true
		}
	}
	note(m.Graph)
	for _, f := range m.Functions {
		note(&onnx.Graph{Nodes: f.Nodes})
	}
	return calls
}
