package modeldiff

import (
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
)

// FileDifference is the first place in which a model is not the expected one.
type FileDifference struct {
	Difference

	// Altered says that no tool that saves models makes such a difference: a weight, an attribute or an
	// input of a node, an input or an output is another one. Otherwise the model has other nodes, which may
	// or may not compute the same.
	Altered bool `json:"altered"`

	// Told says that the graphs compute the same, and the file says more of types or shapes.
	Told bool `json:"-"`

	// Exchanged says that an input or output stands in the place of another one that both models have.
	Exchanged bool `json:"-"`
}

// differs is a difference that a tool may make.
func differs(where, what string) *FileDifference {
	return &FileDifference{Difference: Difference{Where: where, What: what}}
}

// altered is one that none makes.
func altered(where, what string) *FileDifference {
	d := differs(where, what)
	d.Altered = true
	return d
}

// of adds what is expected and what is found.
func (d *FileDifference) of(expected, found string) *FileDifference {
	d.Expected, d.Found = expected, found
	return d
}

// CompareGraphs returns the first place in which two models do not compute the same, nil where there is
// none: every node, weight and attribute, and what the file says of types and shapes inside the
// graph. Inputs and outputs are CompareInterfaces', the rest CompareRest's. say is told the bytes of weights that were read;
// an error from it ends the comparison.
func CompareGraphs(want, have *onnx.Model, say func(read int64) error) (*FileDifference, error) {
	d := newDigester(say)
	d.share(want, have)
	was, err := canonicalise(want, d)
	if err != nil {
		return nil, err
	}
	is, err := canonicalise(have, d)
	if unclear := (unclearError{}); errors.As(err, &unclear) {
		return altered("in it", err.Error()), nil
	}
	if err != nil {
		return nil, err
	}
	if was.graph != is.graph {
		return differenceOf(was, is), nil
	}
	for _, compare := range []func(was, is *canonical) (*FileDifference, error){compareImports, compareClaims} {
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
func differenceOf(was, is *canonical) *FileDifference {
	counts := map[sum]int{}
	for _, n := range was.nodes {
		counts[n.sum]++
	}
	byName := map[string]*onnx.Node{}
	for _, n := range was.nodes {
		byName[name(n.node)] = n.node
	}
	var first *FileDifference
	for _, n := range is.nodes {
		if counts[n.sum]--; counts[n.sum] >= 0 {
			continue
		}
		y, x := n.node, byName[name(n.node)]
		d := differs(node(y), "is unexpected")
		if x != nil && op(x) != op(y) {
			d = differs(node(y), "is in the place of "+node(x))
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
func missing(was, is *canonical) *FileDifference {
	counts := map[sum]int{}
	for _, n := range is.nodes {
		counts[n.sum]++
	}
	for _, n := range was.nodes {
		if counts[n.sum]--; counts[n.sum] < 0 {
			return differs(node(n.node), "is missing")
		}
	}
	for i, v := range is.model.Graph.Outputs {
		if i >= len(was.model.Graph.Outputs) || is.values[v.Name] != was.values[was.model.Graph.Outputs[i].Name] {
			return altered(fmt.Sprintf("the output %q", short.Name(v.Name)), "comes from a different node")
		}
	}
	return altered("", "its inputs, their defaults or its outputs are others")
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
func comparePair(was, is *canonical, x, y *onnx.Node) *FileDifference {
	own := domain(x.Domain) == customop.Domain
	for i := range max(len(x.Inputs), len(y.Inputs)) {
		a, b := at(x.Inputs, i), at(y.Inputs, i)
		if was.values[a] == is.values[b] {
			continue
		}
		if was.weight[a] != nil && is.weight[b] != nil {
			return altered(node(y), fmt.Sprintf("reads the weight %q, which has different numbers", short.Name(b)))
		}
		_, madeA := is.values[a] // what the expected node reads is there, and is not read
		_, madeB := was.values[b]
		if a != b && (madeA || a == "") && (madeB || b == "") {
			return altered(node(y), fmt.Sprintf("reads %q as its input %d, which is a different value", short.Name(b), i))
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
		d := differs(node(y), "differs in "+short.Name(name)).of(numbers(a, b))
		d.Altered = own || a != nil && b != nil
		return d
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

// numbers are those of two attributes, "" where they are long.
func numbers(x, y *onnx.Attribute) (was, is string) {
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
	if was, is = show(x), show(y); was == "" || is == "" {
		return "", ""
	}
	return was, is
}

// compareImports compares the versions of the operators of domains that have nodes.
func compareImports(was, is *canonical) (*FileDifference, error) {
	a, b := imports(was.model.Opsets(), was.domains), imports(is.model.Opsets(), is.domains)
	if slices.Equal(a, b) {
		return nil, nil
	}
	only := func(list, other []string) string {
		left := slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
		return cmp.Or(strings.Join(left, ", "), "none")
	}
	return altered("", "it uses other operators").of(only(a, b), only(b, a)), nil
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
