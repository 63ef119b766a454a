package rewrite_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// patient is a real export to be operated on. The sites say where things are;
// they were found before the operation.
type patient struct {
	*onnx.Model
	t     testing.TB
	sites []*site.Site
	made  int
}

func newPatient(t testing.TB, name string) *patient {
	t.Helper()
	return patientAt(t, filepath.Join("..", "testdata", "models", name, "model.onnx"))
}

func patientAt(t testing.TB, path string) *patient {
	t.Helper()
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	p := &patient{Model: m, t: t}
	p.Graph.ValueInfo = nil // shapes and types may change
	g, err := graph.New(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range g.Nodes {
		if !ir.Standard(n, "Softmax") {
			continue
		}
		c, refusal := (&site.Finder{Graph: g}).Core(n)
		if refusal != nil {
			t.Fatal(refusal)
		}
		s, refusal := site.Delimit(g, *c)
		if refusal != nil {
			t.Fatal(refusal)
		}
		p.sites = append(p.sites, s)
	}
	return p
}

func (p *patient) fresh(stem string) string {
	p.made++
	return fmt.Sprintf("op%d/%s", p.made, stem)
}

func (p *patient) floats(dims []int64, v ...float32) string {
	t := ir.Float32Tensor(p.fresh("floats"), dims, v...)
	p.Graph.AddInitializer(t)
	return t.Name
}

func (p *patient) float(v float32) string { return p.floats([]int64{}, v) }

func (p *patient) ints(v ...int64) string {
	t := ir.Int64Tensor(p.fresh("ints"), []int64{int64(len(v))}, v...)
	p.Graph.AddInitializer(t)
	return t.Name
}

func (p *patient) int(v int64) string {
	t := ir.Int64Tensor(p.fresh("int"), []int64{}, v)
	p.Graph.AddInitializer(t)
	return t.Name
}

// node adds a node and returns its output. Inputs are values.
func (p *patient) node(op string, inputs []string, attrs ...*onnx.Attribute) string {
	n := onnx.NewNode(op, inputs, []string{p.fresh(op)}, attrs...)
	n.Name = n.Outputs[0]
	p.Graph.InsertNode(nil, n)
	return n.Outputs[0]
}

func (p *patient) op(op string, inputs ...string) string { return p.node(op, inputs) }

func (p *patient) cast(v string, to onnx.DataType) string {
	return p.node("Cast", []string{v}, onnx.IntAttr("to", int64(to)))
}

// size returns one dimension of a value as a scalar.
func (p *patient) size(v string, axis int64) string {
	return p.op("Gather", p.op("Shape", v), p.int(axis))
}

// after puts what change makes of a value in its place for all who read it.
func (p *patient) after(value string, change func(old string) string) {
	type use struct {
		node *onnx.Node
		i    int
	}
	var found []use
	for n := range p.Graph.AllNodes() {
		for i, v := range n.Inputs {
			if v == value {
				found = append(found, use{n, i})
			}
		}
	}
	made := change(value)
	if len(found) == 0 {
		p.t.Fatalf("nobody reads %q", value)
	}
	for _, u := range found {
		u.node.Inputs[u.i] = made
	}
}

// into does the same for one reader only.
func (p *patient) into(n *onnx.Node, i int, change func(old string) string) {
	n.Inputs[i] = change(n.Inputs[i])
}

// query, key, value and probabilities change what enters the products of every layer.
func (p *patient) query(change func(old string) string) {
	for _, s := range p.sites {
		p.into(s.ScoresMatMul, 0, change)
	}
}

func (p *patient) key(change func(old string) string) {
	for _, s := range p.sites {
		p.into(s.ScoresMatMul, 1, change)
	}
}

func (p *patient) value(change func(old string) string) {
	for _, s := range p.sites {
		p.into(s.ValueMatMul, 1, change)
	}
}

func (p *patient) probabilities(change func(old string) string) {
	for _, s := range p.sites {
		p.into(s.ValueMatMul, 0, change)
	}
}

// all returns the nodes of an op.
func (p *patient) all(op string) []*onnx.Node {
	var found []*onnx.Node
	for _, n := range p.Graph.Nodes {
		if n.OpType == op {
			found = append(found, n)
		}
	}
	return found
}

// first returns the first node of an op.
func (p *patient) first(op string) *onnx.Node {
	found := p.all(op)
	if len(found) == 0 {
		p.t.Fatalf("no %s in the graph", op)
	}
	return found[0]
}

// up returns the nearest node of one of the ops that makes a value.
func (p *patient) up(value string, ops ...string) *onnx.Node {
	producer := map[string]*onnx.Node{}
	for _, n := range p.Graph.Nodes {
		for _, o := range n.Outputs {
			producer[o] = n
		}
	}
	queue := []string{value}
	seen := map[string]bool{}
	for len(queue) > 0 {
		v := queue[0]
		queue = queue[1:]
		n := producer[v]
		if n == nil || seen[v] {
			continue
		}
		seen[v] = true
		if slices.Contains(ops, n.OpType) {
			return n
		}
		queue = append(queue, n.Inputs...)
	}
	p.t.Fatalf("no %v makes %q", ops, value)
	return nil
}

// output makes a value an output of the graph as well.
func (p *patient) output(value string) {
	p.Graph.AddOutput(&onnx.ValueInfo{Name: value, Type: onnx.Float})
}

// save writes the model in an order that ONNX Runtime takes.
func (p *patient) save() string {
	p.t.Helper()
	if err := ir.Order(p.Graph); err != nil {
		p.t.Fatal(err)
	}
	path := filepath.Join(p.t.TempDir(), "model.onnx")
	if err := p.Save(path, onnx.SaveOptions{}); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// rotation is the nodes that turn one branch: x·cos + rotated(x)·sin.
type rotation struct {
	sum      *onnx.Node // Add
	cos, sin *onnx.Node // the products with the tables
	neg      *onnx.Node
}

func (p *patient) rotation(value string) rotation {
	r := rotation{sum: p.up(value, "Add")}
	r.cos, r.sin = p.up(r.sum.Inputs[0], "Mul"), p.up(r.sum.Inputs[1], "Mul")
	r.neg = p.up(r.sin.Inputs[0], "Neg")
	return r
}

// tables returns the values that cosines and sines are in, as they enter the products.
func (p *patient) tables() (cos, sin *onnx.Node) { return p.first("Cos"), p.first("Sin") }
