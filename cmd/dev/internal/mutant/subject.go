package mutant

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Changed says what was done to a model.
type Changed struct {
	What    string // "Add_12 (Add): Sub in its place; …"
	Control bool   // every place is a control node
}

// subject is a model that is changed.
type subject struct {
	*flow
	model  *onnx.Model
	rng    *rand.Rand
	places []place
}

// place is a node that is changed, and the graph that it is in.
type place struct {
	graph *onnx.Graph
	node  *onnx.Node
}

// kinds are the ways of changing one place. Each says what it did, "" if nothing.
var kinds = []func(*subject, place) string{
	changeOp, changeInput, changeInput, swapInputs, skipNode, changeConstant, changeAttribute,
	changeConstantOfOne, changeConstantOfOne, changeInputOfOne, addReader, roundThrough,
}

// controlKinds are those of control nodes: what other keys a query sees, other angles, other places.
var controlKinds = append([]func(*subject, place) string{
	changeOp, changeOp, shift, shift, shift, scale, scale, stepConstant, stepConstant, stepConstant, swapInputs, changeInput,
}, kinds...)

// Change changes one place of a model, in some models two or three; false when it found none
// that can be changed. Control nodes are drawn twice as often as others.
func Change(m *onnx.Model, rng *rand.Rand) (Changed, bool) {
	s := &subject{flow: follow(m), model: m, rng: rng}
	for g := range m.Graph.AllGraphs() {
		for _, n := range g.Nodes {
			s.places = append(s.places, place{g, n})
			if s.control[n] {
				s.places = append(s.places, place{g, n})
			}
		}
	}
	places := []int{1, 1, 1, 1, 2, 3}[rng.IntN(6)]
	done := Changed{Control: true}
	var whats []string
	for tried := 0; tried < 200 && len(whats) < places; tried++ {
		at := pick(rng, s.places)
		list := kinds
		if s.control[at.node] {
			list = controlKinds
		}
		if what := pick(rng, list)(s, at); what != "" {
			whats = append(whats, what)
			done.Control = done.Control && s.control[at.node]
		}
	}
	done.What = strings.Join(whats, "; ")
	return done, len(whats) > 0
}

func pick[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }

func name(n *onnx.Node) string { return fmt.Sprintf("%s (%s)", n.Name, n.OpType) }

// fresh is a new name for a value.
func (s *subject) fresh() string {
	list := onnx.Names{}
	list.Note(s.model.Graph)
	return list.Fresh("mutant")
}

// add adds a constant to the model.
func (s *subject) add(t *onnx.Tensor) {
	s.model.Graph.AddInitializer(t)
	for _, values := range s.scopes {
		values.types[t.Name] = t.Type
	}
}

// typeOf is the type of a value that a node may read or makes.
func (s *subject) typeOf(at place, v string) onnx.DataType { return s.scopes[at.graph].types[v] }

// made is the type of a node's output.
func (s *subject) made(at place) onnx.DataType { return s.typeOf(at, at.node.Outputs[0]) }

// behind lets all readers of a node's only output, or one of them, read what make makes of it; "" if there are
// none. make gives the nodes that make the value of its second argument of that of its first.
func (s *subject) behind(at place, make func(from, to string) []*onnx.Node) (readers string) {
	from := at.node.Outputs[0]
	type reading struct {
		node  *onnx.Node
		input int
	}
	var list []reading
	inside := &onnx.Graph{Nodes: at.graph.Nodes[slices.Index(at.graph.Nodes, at.node):]}
	for n := range inside.AllNodes() {
		for i, v := range n.Inputs {
			if v == from {
				list = append(list, reading{n, i})
			}
		}
	}
	if len(list) == 0 {
		return ""
	}
	readers = "all readers"
	if len(list) > 1 && s.rng.IntN(3) == 0 {
		list = []reading{pick(s.rng, list)}
		readers = name(list[0].node)
	}
	to := s.fresh()
	s.scopes[at.graph].types[to] = s.made(at)
	i := slices.Index(at.graph.Nodes, at.node) + 1
	at.graph.Nodes = slices.Insert(at.graph.Nodes, i, make(from, to)...)
	for _, r := range list {
		r.node.Inputs[r.input] = to
	}
	return readers
}

// makes reports whether a node makes one value, of a type that is asked for.
func (s *subject) makes(at place, is func(onnx.DataType) bool) bool {
	return len(at.node.Outputs) == 1 && is(s.made(at))
}
