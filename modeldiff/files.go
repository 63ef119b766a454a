package modeldiff

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
)

// CompareInterfaces returns the first difference of the inputs and outputs of two files: in names, types, shapes and
// names of dimensions. Of an output a file may say more than was expected: CompareGraphs asks whether that follows.
func CompareInterfaces(want, have *onnx.Model) *Difference {
	return cmp.Or(compareInterface(want.Graph.Inputs, have.Graph.Inputs, true), compareInterface(want.Graph.Outputs, have.Graph.Outputs, false))
}

// CompareRest returns the first difference of two files beside inputs, outputs and what their graphs compute: the version
// of the format, metadata but for the record, functions. It also returns the functions of the fallback that the file
// lacks: it computes the same without, where the op's library is.
func CompareRest(want, have *onnx.Model) (first *Difference, dropped []string, err error) {
	if want.IRVersion != have.IRVersion {
		return &Difference{What: fmt.Sprintf("its version of ONNX's format is %d instead of %d", have.IRVersion, want.IRVersion)}, nil, nil
	}
	if len(want.Training)+len(have.Training) > 0 {
		return &Difference{What: "it has training information, which is not compared"}, nil, nil
	}
	if list := changes(metadata(want), metadata(have)); len(list) > 0 {
		return &Difference{What: fmt.Sprintf("its metadata differ in %s", short.Name(list[0].Name))}, nil, nil
	}
	return compareFunctions(want, have)
}

// compareInterface compares inputs, or outputs. Of these the file may say more than was expected: CompareGraphs asks
// whether that follows.
func compareInterface(want, have []*onnx.ValueInfo, inputs bool) *Difference {
	was, is := values(want), values(have)
	for i := range max(len(was), len(is)) {
		switch {
		case i >= len(was):
			return &Difference{What: fmt.Sprintf("%q is unexpected among its inputs or outputs", short.Name(is[i].name)), Altered: true}
		case i >= len(is):
			return &Difference{What: fmt.Sprintf("%q is missing among its inputs or outputs", short.Name(was[i].name)), Altered: true}
		case was[i].name != is[i].name:
			return &Difference{What: fmt.Sprintf("%q is in the place of %q among its inputs or outputs", short.Name(is[i].name), short.Name(was[i].name)), Altered: true}
		case was[i].text != is[i].text && (inputs || !follows(want[i], have[i], func(_, _ onnx.Dim) bool { return false })):
			return &Difference{What: fmt.Sprintf("%q is %s instead of %s", short.Name(is[i].name), short.Name(is[i].text), short.Name(was[i].text)), Altered: true}
		}
	}
	return nil
}

// compareFunctions compares the functions that nodes of a file can call with those of the expected model of the same
// names, by contents. A function of the model's own that the file lacks is a difference of its graph, if one.
func compareFunctions(want, have *onnx.Model) (first *Difference, dropped []string, err error) {
	d := &digester{say: func(int64) error { return nil }, digests: map[*onnx.Tensor][sha256.Size]byte{}}
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
			return &Difference{What: name + " was added", Altered: true}, nil, nil
		}
		kept[k] = true
		same, err := sameFunctions(was, is, expected[k], f)
		if err != nil {
			return nil, nil, err
		}
		if !same && (!fallback || slices.Contains(other, f)) {
			return &Difference{What: name + " is different", Altered: !fallback}, nil, nil
		}
	}
	for _, f := range want.Functions {
		switch k := keyOf(f); {
		case kept[k]:
		case k[0] == customop.Domain:
			dropped = append(dropped, f.Name)
		case calls[[2]string{k[0], k[1]}]:
			return &Difference{What: fmt.Sprintf("the function %s is missing", short.Name(f.Name)), Altered: true}, nil, nil
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
