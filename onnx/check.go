package onnx

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// CheckValues returns an error about the first value that a node reads or a
// graph gives and that nothing makes: no node, input or initializer of its
// graph or, for what is read, of a graph around it. Functions see their own
// values only. It also returns an error about axes of a Transpose that do not
// exist. No runtime loads such a model. The order of nodes is not looked at.
//
// Of a model that was changed since it was opened, it repeats what Open checks:
// that no two things have one name.
func (m *Model) CheckValues() error {
	if err := cmp.Or(m.checkDoubles(), m.Graph.checkValues(nil)); err != nil {
		return err
	}
	for _, f := range m.Functions {
		if err := f.checkValues(); err != nil {
			return fmt.Errorf("function %q: %w", short.Name(f.Name), err)
		}
	}
	return nil
}

// made are the values that a graph makes, and those around it.
type made struct {
	values map[string]bool
	around *made
}

func (s *made) has(value string) bool {
	for ; s != nil; s = s.around {
		if s.values[value] {
			return true
		}
	}
	return false
}

func (g *Graph) checkValues(around *made) error {
	s := &made{values: map[string]bool{}, around: around}
	for _, v := range g.Inputs {
		s.values[v.Name] = true
	}
	for name := range g.InitializerNames() {
		s.values[name] = true
	}
	if err := s.checkNodes(g.Nodes); err != nil {
		return err
	}
	var outputs []string
	for _, v := range g.Outputs {
		outputs = append(outputs, v.Name)
	}
	return checkGiven(outputs, s.values)
}

func (f *Function) checkValues() error {
	s := &made{values: map[string]bool{}}
	for _, v := range f.Inputs {
		s.values[v] = true
	}
	if err := s.checkNodes(f.Nodes); err != nil {
		return err
	}
	for _, v := range f.Inputs {
		delete(s.values, v) // ONNX Runtime wants outputs that nodes make
	}
	return checkGiven(f.Outputs, s.values)
}

// checkNodes adds what the nodes make, and checks what they read.
func (s *made) checkNodes(nodes []*Node) error {
	for _, n := range nodes {
		for _, v := range n.Outputs {
			s.values[v] = true
		}
	}
	for i, n := range nodes {
		for _, v := range n.Inputs {
			if v != "" && !s.has(v) {
				return fmt.Errorf("%s reads %q, which no node, input or initializer makes: the model is broken", n.place(i), short.Name(v))
			}
		}
		if err := n.checkPerm(); err != nil {
			return fmt.Errorf("%s %w: the model is broken", n.place(i), err)
		}
		for sub := range n.Subgraphs() {
			if err := sub.checkValues(s); err != nil {
				return fmt.Errorf("in a graph of %s: %w", n.place(i), err)
			}
		}
	}
	return nil
}

// checkPerm checks that a Transpose names each axis once. PyTorch's TorchScript
// exporter writes axes that are counted from the end, as -1, which ONNX has not.
func (n *Node) checkPerm() error {
	if n.OpType != "Transpose" || n.Domain != "" && n.Domain != "ai.onnx" {
		return nil
	}
	perm := n.Ints("perm")
	seen := make([]bool, len(perm))
	for _, axis := range perm {
		switch {
		case axis < 0:
			return fmt.Errorf("permutes axes by %d, which counts from the end, but ONNX counts from 0; export the model with PyTorch's newer exporter (dynamo=True)", axis)
		case axis >= int64(len(perm)) || seen[axis]:
			return fmt.Errorf("permutes %d axes by %d, which does not exist or is given twice", len(perm), axis)
		}
		seen[axis] = true
	}
	return nil
}

// checkGiven checks the outputs of a graph, which must be its own values.
func checkGiven(outputs []string, own map[string]bool) error {
	for _, v := range outputs {
		if !own[v] {
			return fmt.Errorf("no node, input or initializer makes the output %q: the model is broken", short.Name(v))
		}
	}
	return nil
}

// place names a node in an error by its place in the list that it stands in.
func (n *Node) place(i int) string {
	return fmt.Sprintf("node %d (%s %q)", i, plain(short.Name(n.OpType)), short.Name(n.Name))
}

// plain is a word of a file as errors have it: with quotes if it could be taken for something else.
func plain(word string) string {
	if quoted := strconv.Quote(word); word == "" || quoted[1:len(quoted)-1] != word {
		return quoted
	}
	return word
}
