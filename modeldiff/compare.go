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
}

// CompareGraphs returns the first place in which two models do not compute the same, nil where there is
// none: every node, weight, attribute and function, and what the file says of types and shapes inside the
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
	for _, compare := range []func(was, is *canonical) (*Difference, error){compareImports, compareFunctions, compareClaims} {
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
	used := map[string]bool{}
	for op := range was.uses {
		used[op[0]] = true
	}
	a, b := imports(was.model.Opsets(), used), imports(is.model.Opsets(), used)
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

// compareFunctions compares the functions that nodes could call, but for the fallback, by contents.
func compareFunctions(was, is *canonical) (*Difference, error) {
	called := func(c *canonical) map[functionKey][]*onnx.Function {
		list := map[functionKey][]*onnx.Function{}
		uses := maps.Clone(c.uses)
		for _, f := range c.model.Functions {
			for n := range (&onnx.Graph{Nodes: f.Nodes}).AllNodes() {
				uses[[2]string{domain(n.Domain), n.OpType}] = true
			}
		}
		for _, f := range c.model.Functions {
			if k := keyOf(f); uses[[2]string{k[0], k[1]}] && k[0] != customop.Domain {
				list[k] = append(list[k], f)
			}
		}
		return list
	}
	a, b := called(was), called(is)
	for k := range b {
		if a[k] == nil {
			return &Difference{What: fmt.Sprintf("the function %s is unexpected", short.Name(k[1]))}, nil
		}
	}
	for k, list := range a {
		if b[k] == nil {
			return &Difference{What: fmt.Sprintf("the function %s is missing", short.Name(k[1]))}, nil
		}
		if same, err := sameFunctions(was, is, list, b[k]); err != nil || !same {
			return &Difference{What: fmt.Sprintf("the function %s computes something else", short.Name(k[1])), Altered: true}, err
		}
	}
	return nil, nil
}

func sameFunctions(was, is *canonical, a, b []*onnx.Function) (bool, error) {
	if len(a) != 1 || len(b) != 1 {
		return false, nil
	}
	x, err := was.function(a[0])
	if err != nil {
		return false, err
	}
	y, err := is.function(b[0])
	if unclear := (unclearError{}); errors.As(err, &unclear) {
		return false, nil
	}
	return x == y, err
}

// compareClaims looks for something that a file says of a value's type or shape and that the expected model does not:
// ONNX Runtime believes it, computes with it ahead, and plans memory by it.
func compareClaims(was, is *canonical) (*Difference, error) {
	for value, list := range is.claims {
		for _, c := range list {
			known := slices.ContainsFunc(was.claims[value], func(k claim) bool { return follows(c.value, k.value, is.once) })
			if !known && says(c.value) {
				return &Difference{What: fmt.Sprintf("it says that %q is %s, which does not follow", short.Name(c.name), typeText(c.value))}, nil
			}
		}
	}
	return nil, nil
}

// says reports whether anything is said of a value.
func says(v *onnx.ValueInfo) bool { return v.Type != onnx.Undefined || v.HasShape || v.Other() != nil }

// follows reports whether what is said of a value follows from what is known. A name of a dimension that is said once
// in a file says nothing.
func follows(said, known *onnx.ValueInfo, once map[string]int) bool {
	if said.Type != known.Type || !bytes.Equal(said.Other(), known.Other()) {
		return false
	}
	if !said.HasShape {
		return true
	}
	return known.HasShape && slices.EqualFunc(said.Shape, known.Shape, func(s, k onnx.Dim) bool {
		return s == k || s.Param == "" && s.Value < 0 || s.Param != "" && once[s.Param] == 1
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
// of the format, metadata but for the record, the fallback. It also returns the functions of the fallback that the
// file lacks: it computes the same without, where the op's library is.
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
	return compareFallback(want, have)
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
		case was[i].text != is[i].text && (inputs || !follows(want[i], have[i], nil)):
			return &Difference{What: fmt.Sprintf("%q is %s instead of %s", short.Name(is[i].name), short.Name(is[i].text), short.Name(was[i].text)), Altered: true}
		}
	}
	return nil
}

func compareFallback(want, have *onnx.Model) (*Difference, []string, error) {
	byKey := map[functionKey][]*onnx.Function{}
	for _, f := range have.Functions {
		byKey[keyOf(f)] = append(byKey[keyOf(f)], f)
	}
	d := &digester{say: func(int64) error { return nil }, digests: map[*onnx.Tensor][sha256.Size]byte{}}
	was, is := &canonical{model: want, digest: d, uses: map[[2]string]bool{}}, &canonical{model: have, digest: d, uses: map[[2]string]bool{}}
	unknown := definition.Unknown(have) // others were written by a version of rope-rewrite
	var dropped []string
	for _, f := range want.Functions {
		k := keyOf(f)
		list := byKey[k]
		delete(byKey, k)
		if k[0] != customop.Domain {
			continue
		}
		if list == nil {
			dropped = append(dropped, f.Name)
			continue
		}
		same, err := sameFunctions(was, is, []*onnx.Function{f}, list)
		if err != nil {
			return nil, nil, err
		}
		if !same && (len(list) > 1 || slices.Contains(unknown, list[0])) {
			return &Difference{What: fmt.Sprintf("the fallback %s is different", short.Name(f.Name))}, nil, nil
		}
	}
	for k := range byKey {
		if k[0] == customop.Domain {
			return &Difference{What: fmt.Sprintf("the fallback %s was added", short.Name(k[1])), Altered: true}, nil, nil
		}
	}
	return nil, dropped, nil
}
