package kit

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

// Patient is a real export to be operated on. The sites say where things are;
// they were found before the operation.
type Patient struct {
	*onnx.Model
	TB    testing.TB
	Sites []*site.Site
	made  int
}

// NewPatient opens an export of testdata/models.
func NewPatient(t testing.TB, name string) *Patient {
	t.Helper()
	return PatientAt(t, Model(name))
}

// PatientAt opens another one.
func PatientAt(t testing.TB, path string) *Patient {
	t.Helper()
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	p := &Patient{Model: m, TB: t}
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
		p.Sites = append(p.Sites, s)
	}
	return p
}

// Fresh returns a name that nothing has.
func (p *Patient) Fresh(stem string) string {
	p.made++
	return fmt.Sprintf("op%d/%s", p.made, stem)
}

// Floats, Float, Ints and Int add constants and return their names.
func (p *Patient) Floats(dims []int64, v ...float32) string {
	t := ir.Float32Tensor(p.Fresh("floats"), dims, v...)
	p.Graph.AddInitializer(t)
	return t.Name
}

func (p *Patient) Float(v float32) string { return p.Floats([]int64{}, v) }

func (p *Patient) Ints(v ...int64) string {
	t := ir.Int64Tensor(p.Fresh("ints"), []int64{int64(len(v))}, v...)
	p.Graph.AddInitializer(t)
	return t.Name
}

func (p *Patient) Int(v int64) string {
	t := ir.Int64Tensor(p.Fresh("int"), []int64{}, v)
	p.Graph.AddInitializer(t)
	return t.Name
}

// Node adds a node and returns its output. Inputs are values.
func (p *Patient) Node(op string, inputs []string, attrs ...*onnx.Attribute) string {
	n := onnx.NewNode(op, inputs, []string{p.Fresh(op)}, attrs...)
	n.Name = n.Outputs[0]
	p.Graph.InsertNode(nil, n)
	return n.Outputs[0]
}

// Op is Node without attributes.
func (p *Patient) Op(op string, inputs ...string) string { return p.Node(op, inputs) }

// Cast adds a Cast.
func (p *Patient) Cast(v string, to onnx.DataType) string {
	return p.Node("Cast", []string{v}, onnx.IntAttr("to", int64(to)))
}

// Size returns one dimension of a value as a scalar.
func (p *Patient) Size(v string, axis int64) string {
	return p.Op("Gather", p.Op("Shape", v), p.Int(axis))
}

// After puts what change makes of a value in its place for all who read it.
func (p *Patient) After(value string, change func(old string) string) {
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
		p.TB.Fatalf("nobody reads %q", value)
	}
	for _, u := range found {
		u.node.Inputs[u.i] = made
	}
}

// Into does the same for one reader only.
func (p *Patient) Into(n *onnx.Node, i int, change func(old string) string) {
	n.Inputs[i] = change(n.Inputs[i])
}

// Query, key, value and probabilities change what enters the products of every layer.
func (p *Patient) Query(change func(old string) string) {
	for _, s := range p.Sites {
		p.Into(s.ScoresMatMul, 0, change)
	}
}

func (p *Patient) Key(change func(old string) string) {
	for _, s := range p.Sites {
		p.Into(s.ScoresMatMul, 1, change)
	}
}

func (p *Patient) Value(change func(old string) string) {
	for _, s := range p.Sites {
		p.Into(s.ValueMatMul, 1, change)
	}
}

func (p *Patient) Probabilities(change func(old string) string) {
	for _, s := range p.Sites {
		p.Into(s.ValueMatMul, 0, change)
	}
}

// All returns the nodes of an op.
func (p *Patient) All(op string) []*onnx.Node {
	var found []*onnx.Node
	for _, n := range p.Graph.Nodes {
		if n.OpType == op {
			found = append(found, n)
		}
	}
	return found
}

// First returns the first node of an op.
func (p *Patient) First(op string) *onnx.Node {
	found := p.All(op)
	if len(found) == 0 {
		p.TB.Fatalf("no %s in the graph", op)
	}
	return found[0]
}

// Up returns the nearest node of one of the ops that makes a value.
func (p *Patient) Up(value string, ops ...string) *onnx.Node {
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
	p.TB.Fatalf("no %v makes %q", ops, value)
	return nil
}

// Output makes a value an output of the graph as well.
func (p *Patient) Output(value string) {
	p.Graph.AddOutput(&onnx.ValueInfo{Name: value, Type: onnx.Float})
}

// Saved writes the model in an order that ONNX Runtime takes.
func (p *Patient) Saved() string {
	p.TB.Helper()
	if err := ir.Order(p.Graph); err != nil {
		p.TB.Fatal(err)
	}
	path := filepath.Join(p.TB.TempDir(), "model.onnx")
	if err := p.Save(path, onnx.SaveOptions{}); err != nil {
		p.TB.Fatal(err)
	}
	return path
}

// Rotation is the nodes that turn one branch: x·cos + rotated(x)·sin.
type Rotation struct {
	Sum      *onnx.Node // Add
	Cos, Sin *onnx.Node // the products with the tables
	Neg      *onnx.Node
}

// Rotation finds the nodes that turn a value.
func (p *Patient) Rotation(value string) Rotation {
	r := Rotation{Sum: p.Up(value, "Add")}
	r.Cos, r.Sin = p.Up(r.Sum.Inputs[0], "Mul"), p.Up(r.Sum.Inputs[1], "Mul")
	r.Neg = p.Up(r.Sin.Inputs[0], "Neg")
	return r
}

// Tables returns the values that cosines and sines are in, as they enter the products.
func (p *Patient) Tables() (cos, sin *onnx.Node) { return p.First("Cos"), p.First("Sin") }
