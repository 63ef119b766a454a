package modeldiff

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
)

// Difference is the first place in which a model is not the expected one.
type Difference struct {
	What string `json:"what"`

	// Altered says that no tool that saves models makes such a difference: a weight, an attribute or an
	// input of a node, an input or an output is another one. Otherwise the model has other nodes, which may
	// or may not compute the same.
	Altered bool `json:"altered"`

	// Told says that the graphs compute the same, and the file says more of types or shapes.
	Told bool `json:"-"`
}

// CompareGraphs returns the first place in which two models do not compute the same, nil where there is
// none: every node, weight and attribute, and what the file says of types and shapes inside the
// graph. Inputs and outputs are CompareInterfaces', the rest CompareRest's. say is told the bytes of weights that were read;
// an error from it ends the comparison.
func CompareGraphs(want, have *onnx.Model, say func(read int64) error) (*Difference, error) {
	d := &digester{say: say, digests: map[*onnx.Tensor][sha256.Size]byte{}}
	d.share(want, have)
	was, err := canonicalise(want, d)
	if err != nil {
		return nil, err
	}
	is, err := canonicalise(have, d)
	if unclear := (unclearError{}); errors.As(err, &unclear) {
		return &Difference{What: "in it " + err.Error(), Altered: true}, nil
	}
	if err != nil {
		return nil, err
	}
	if was.graph != is.graph {
		return differenceOf(was, is), nil
	}
	for _, compare := range []func(was, is *canonical) (*Difference, error){compareImports, compareClaims} {
		if first, err := compare(was, is); first != nil || err != nil {
			return first, err
		}
	}
	return nil, nil
}

// share gives weights of one name that are the same bytes of one file one digest without reading them.
func (d *digester) share(a, b *onnx.Model) {
	byName := map[string]*onnx.Tensor{}
	for _, t := range a.Graph.Initializers {
		byName[t.Name] = t
	}
	for _, t := range b.Graph.Initializers {
		if s := byName[t.Name]; s != nil && s.SharesContents(t) {
			sum := sha256.Sum256([]byte("shared " + t.Name))
			d.digests[s], d.digests[t] = sum, sum
		}
	}
}

func node(n *onnx.Node) string { return fmt.Sprintf("%s %q", short.Name(n.OpType), short.Name(n.Name)) }

func op(n *onnx.Node) [3]string { return [3]string{domain(n.Domain), n.OpType, n.Overload} }

// differenceOf names the first difference of two graphs. That there is one is known: names of values only serve
// to say which.
func differenceOf(was, is *canonical) *Difference {
	counts := map[sum]int{}
	for _, n := range was.nodes {
		counts[n.sum]++
	}
	byName := map[string]*onnx.Node{}
	for _, n := range was.nodes {
		byName[name(n.node)] = n.node
	}
	var first *Difference
	for _, n := range is.nodes {
		if counts[n.sum]--; counts[n.sum] >= 0 {
			continue
		}
		y, x := n.node, byName[name(n.node)]
		d := &Difference{What: node(y) + " is unexpected"}
		if x != nil && op(x) != op(y) {
			d.What = fmt.Sprintf("%s is in the place of %s", node(y), node(x))
		}
		if x != nil && op(x) == op(y) {
			if pair := comparePair(was, is, x, y); pair != nil {
				d = pair
			}
		}
		if d.Altered {
			return d
		}
		if first == nil {
			first = d
		}
	}
	if first == nil {
		first = missing(was, is)
	}
	if slices.Equal(opsOf(was), opsOf(is)) {
		first.Altered = true // the same nodes are connected otherwise
	}
	return first
}

// missing is the difference of a graph that has no other nodes than the expected ones.
func missing(was, is *canonical) *Difference {
	counts := map[sum]int{}
	for _, n := range is.nodes {
		counts[n.sum]++
	}
	for _, n := range was.nodes {
		if counts[n.sum]--; counts[n.sum] < 0 {
			return &Difference{What: node(n.node) + " is missing"}
		}
	}
	for i, v := range is.model.Graph.Outputs {
		if i >= len(was.model.Graph.Outputs) || is.values[v.Name] != was.values[was.model.Graph.Outputs[i].Name] {
			return &Difference{What: fmt.Sprintf("the output %q comes from a different node", short.Name(v.Name)), Altered: true}
		}
	}
	return &Difference{What: "its inputs, their defaults or its outputs are others", Altered: true}
}

func opsOf(c *canonical) (list []string) {
	for n := range c.model.Graph.AllNodes() {
		if constantOf(n) == nil {
			list = append(list, strings.Join([]string{domain(n.Domain), n.OpType, n.Overload}, " "))
		}
	}
	slices.Sort(list)
	return list
}

// name is that of a node's first output.
func name(n *onnx.Node) string {
	for _, v := range n.Outputs {
		if v != "" {
			return v
		}
	}
	return ""
}

// comparePair says how two nodes of one op and one name differ: in a weight or in another value that both models
// have, in an attribute. nil is said where only the values that they read differ, and these have no common names.
func comparePair(was, is *canonical, x, y *onnx.Node) *Difference {
	own := domain(x.Domain) == customop.Domain
	for i := range max(len(x.Inputs), len(y.Inputs)) {
		a, b := at(x.Inputs, i), at(y.Inputs, i)
		if was.values[a] == is.values[b] {
			continue
		}
		if was.weight[a] != nil && is.weight[b] != nil {
			return &Difference{What: fmt.Sprintf("%s reads the weight %q, which has different numbers", node(y), short.Name(b)), Altered: true}
		}
		_, madeA := is.values[a] // what the expected node reads is there, and is not read
		_, madeB := was.values[b]
		if a != b && (madeA || a == "") && (madeB || b == "") {
			return &Difference{What: fmt.Sprintf("%s reads %q as its input %d, which is a different value", node(y), short.Name(b), i), Altered: true}
		}
	}
	for _, name := range attributeNames(x, y) {
		a, b := x.Attribute(name), y.Attribute(name)
		if a != nil && b != nil && (a.Type == onnx.AttrGraph || a.Type == onnx.AttrGraphs) {
			continue
		}
		if sameAttribute(was, is, a, b) {
			continue
		}
		return &Difference{What: fmt.Sprintf("%s differs in %s%s", node(y), short.Name(name), numbers(a, b)), Altered: own || a != nil && b != nil}
	}
	return nil
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}

func attributeNames(nodes ...*onnx.Node) []string {
	names := map[string]bool{}
	for _, n := range nodes {
		for _, a := range n.Attributes {
			names[a.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func sameAttribute(was, is *canonical, a, b *onnx.Attribute) bool {
	if a == nil || b == nil {
		return false
	}
	x, errX := was.attribute(a, &scope{}, sum{})
	y, errY := is.attribute(b, &scope{}, sum{})
	return errX == nil && errY == nil && x == y
}

// numbers are those of two attributes, where they are short.
func numbers(x, y *onnx.Attribute) string {
	show := func(a *onnx.Attribute) string {
		switch {
		case a == nil:
			return "none"
		case a.Type == onnx.AttrFloat:
			return fmt.Sprint(a.Float)
		case a.Type == onnx.AttrInt:
			return fmt.Sprint(a.Int)
		case a.Type == onnx.AttrString:
			return fmt.Sprintf("%q", short.Name(string(a.Bytes)))
		case a.Type == onnx.AttrFloats && y != nil && x != nil && len(x.Floats) == len(y.Floats):
			i := 0
			for i < len(x.Floats)-1 && x.Floats[i] == y.Floats[i] {
				i++
			}
			return fmt.Sprintf("%v at %d", a.Floats[i], i)
		}
		return ""
	}
	was, is := show(x), show(y)
	if was == "" || is == "" {
		return ""
	}
	return fmt.Sprintf(": %s instead of %s", is, was)
}

// compareImports compares the versions of the operators of domains that have nodes.
func compareImports(was, is *canonical) (*Difference, error) {
	a, b := imports(was.model.Opsets(), was.domains), imports(is.model.Opsets(), is.domains)
	if slices.Equal(a, b) {
		return nil, nil
	}
	only := func(list, other []string) string {
		left := slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
		return cmp.Or(strings.Join(left, ", "), "none")
	}
	return &Difference{What: fmt.Sprintf("it uses %s instead of %s", only(b, a), only(a, b)), Altered: true}, nil
}

// functionKey is what a node names a function by.
type functionKey [3]string

func keyOf(f *onnx.Function) functionKey {
	return functionKey{domain(f.Domain), f.Name, f.Overload}
}

func sameFunctions(was, is *canonical, a, b *onnx.Function) (bool, error) {
	x, err := was.function(a)
	if err != nil {
		return false, err
	}
	y, err := is.function(b)
	if unclear := (unclearError{}); errors.As(err, &unclear) {
		return false, nil
	}
	return x == y, err
}

// compareClaims looks for something that a file says of a value's type or shape and that the expected model does not:
// ONNX Runtime believes it, computes with it ahead, and plans memory by it.
func compareClaims(was, is *canonical) (*Difference, error) {
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
				return &Difference{What: fmt.Sprintf("it says that %q is %s, which does not follow", short.Name(c.name), typeText(c.value)), Told: true}, nil
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
	d := &digester{say: say, digests: map[*onnx.Tensor][sha256.Size]byte{}}
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
