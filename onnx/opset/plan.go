package opset

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// plan is what is to become of a model. The model itself changes when all of it is known.
type plan struct {
	table   *table
	changes []change
	to      int64

	own     map[string]bool // operators that functions of the model stand for in the standard domain
	names   onnx.Names      // in use anywhere
	read    map[string]bool // values that something reads, anywhere
	commits []func()

	converted int
}

func newPlan(m *onnx.Model, t *table, to int64) *plan {
	p := &plan{table: t, changes: changes(), to: to, own: map[string]bool{}, names: onnx.Names{}, read: map[string]bool{}}
	p.note(m.Graph)
	for _, f := range m.Functions {
		if standard(f.Domain) {
			p.own[f.Name] = true
		}
		p.note(&onnx.Graph{Nodes: f.Nodes})
		for _, v := range f.Inputs {
			p.names[v] = true
		}
		for _, v := range f.Outputs {
			p.read[v] = true
		}
	}
	return p
}

// note notes the names of a graph and of the graphs inside its nodes, and what is read there.
func (p *plan) note(g *onnx.Graph) {
	p.names.Note(g)
	for g := range g.AllGraphs() {
		for _, v := range g.Outputs {
			p.read[v.Name] = true
		}
		for _, n := range g.Nodes {
			for _, v := range n.Inputs {
				p.read[v] = true
			}
		}
	}
}

// graph plans a graph and the graphs inside its nodes.
func (p *plan) graph(g *onnx.Graph, from int64) error {
	return p.within(g, from, nil)
}

// within plans a graph of which the facts of the graphs around it are known.
func (p *plan) within(g *onnx.Graph, from int64, around *facts) error {
	s := newScope(p, around)
	s.facts.declare(g)
	nodes, err := s.nodes(g.Nodes, from)
	if err != nil {
		return err
	}
	if s.converted > 0 {
		p.commits = append(p.commits, func() { g.Nodes = nodes })
	}
	return nil
}

// function plans a function of the model's own, by the version that it names itself.
func (p *plan) function(f *onnx.Function) error {
	from, err := standardVersion(f.Opsets)
	if err != nil || from == 0 || from >= p.to {
		return err
	}
	if from < p.table.oldest {
		return fmt.Errorf("it uses opset %d, and the oldest known is %d", from, p.table.oldest)
	}
	s := newScope(p, nil)
	nodes, err := s.nodes(f.Nodes, from)
	if err != nil {
		return err
	}
	p.commits = append(p.commits, func() {
		f.Nodes, f.Opsets = nodes, raisedList(f.Opsets, p.to)
	})
	return nil
}

// scope is a list of nodes on their way up: those of a graph or of a function.
type scope struct {
	*plan
	facts     *facts
	constants []*onnx.Node      // new ones, which stand in front of the others
	shared    map[string]string // name of a new constant by its value
	converted int
}

func newScope(p *plan, around *facts) *scope {
	return &scope{plan: p, facts: newFacts(around), shared: map[string]string{}}
}

// nodes returns what becomes of a list of nodes.
func (s *scope) nodes(list []*onnx.Node, from int64) (out []*onnx.Node, err error) {
	for _, n := range list {
		for sub := range n.Subgraphs() {
			if err := s.within(sub, from, s.facts); err != nil {
				return nil, err
			}
		}
		raised, err := s.node(n, from)
		if err != nil {
			return nil, fmt.Errorf("node %q: %w", short.Name(label(n)), err)
		}
		out = append(out, raised...)
		s.facts.learn(n)
	}
	s.plan.converted += s.converted
	return append(s.constants, out...), nil
}

// label names a node in an error: by its first output where it has no name.
func label(n *onnx.Node) string {
	if n.Name == "" && len(n.Outputs) > 0 {
		return n.Outputs[0]
	}
	return n.Name
}

// node returns what becomes of a node, version by version; the node itself where nothing does.
func (s *scope) node(n *onnx.Node, from int64) ([]*onnx.Node, error) {
	if !standard(n.Domain) {
		return []*onnx.Node{n}, nil
	}
	if s.own[n.OpType] {
		if _, known := s.table.at(n.OpType, s.to); known {
			return nil, fmt.Errorf("the model's own function %s has the name of a standard operator", short.Name(n.OpType))
		}
		return []*onnx.Node{n}, nil
	}
	if last, known := ofRuntime()[n.OpType]; known && (last == 0 || from <= last) {
		return []*onnx.Node{n}, nil
	}
	switch v, known := s.table.at(n.OpType, from); {
	case !known:
		return nil, fmt.Errorf("opset %d has no operator %s", from, short.Name(n.OpType))
	case v.mark == removed:
		return nil, fmt.Errorf("opset %d removed the operator %s", v.since, short.Name(n.OpType))
	}
	list := []*onnx.Node{n}
	for v := from + 1; v <= s.to; v++ {
		for i := 0; i < len(list); i++ {
			c := changeAt(s.changes, list[i].OpType, v)
			if c == nil {
				continue
			}
			more, err := s.convert(list[i], c)
			if err != nil {
				return nil, err
			}
			list = append(list[:i:i], append(more, list[i+1:]...)...)
			i += len(more) - 1
		}
	}
	if len(list) > 1 || list[0] != n {
		s.converted++
	}
	return list, nil
}

// convert returns what becomes of a node at one version.
func (s *scope) convert(n *onnx.Node, c *change) ([]*onnx.Node, error) {
	fail := func(why error) error {
		return fmt.Errorf("%s changed in opset %d (%s): %w", short.Name(n.OpType), c.since, c.what, why)
	}
	for _, a := range n.Attributes {
		if a.RefName != "" {
			return nil, fail(fmt.Errorf("its attribute %s belongs to the function around it and may differ in each call", short.Name(a.Name)))
		}
	}
	list, err := c.convert(&step{scope: s, node: n})
	if err != nil {
		return nil, fail(err)
	}
	return list, nil
}
