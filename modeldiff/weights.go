package modeldiff

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io/fs"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Weights says how the constants of two models compare, those of graphs inside nodes
// too.
type Weights struct {
	Same    int      `json:"same"`
	Changed []Change `json:"changed"`
	Renamed []Change `json:"renamed"` // the same contents under another name
	OnlyA   []Change `json:"only_a"`
	OnlyB   []Change `json:"only_b"`

	Unread []Unread `json:"unread"` // could not be compared

	Read int64 `json:"bytes_read"` // of contents, to compare them
}

func (w Weights) differ() bool {
	return len(w.Changed)+len(w.Renamed)+len(w.OnlyA)+len(w.OnlyB) > 0
}

// Unread is a constant that could not be compared.
type Unread struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// constant is one constant of a model.
type constant struct {
	model  *onnx.Model
	tensor *onnx.Tensor
	name   string
}

// constants lists the initializers of a model and the values of its Constant nodes.
func constants(m *onnx.Model) (list []constant) {
	add := func(g *onnx.Graph, name string, t *onnx.Tensor) {
		if g != m.Graph {
			name = g.Name + "/" + name
		}
		list = append(list, constant{m, t, name})
	}
	for g := range m.Graph.AllGraphs() {
		for _, t := range g.Initializers {
			add(g, t.Name, t)
		}
		for _, t := range g.SparseInitializers { // a dense one has other parts: the two are never called the same
			for part, tensor := range map[string]*onnx.Tensor{"values": t.Values, "indices": t.Indices} {
				if tensor != nil {
					add(g, t.Name()+" ("+part+fmt.Sprint(" of sparse ", t.Dims)+")", tensor)
				}
			}
		}
		for _, n := range g.Nodes {
			if t := n.Tensor("value"); t != nil && n.OpType == "Constant" && n.Domain == "" && len(n.Outputs) == 1 {
				add(g, n.Outputs[0], t)
			}
		}
	}
	return list
}

// text is a constant's type and shape.
func (c constant) text() string { return fmt.Sprintf("%v %v", c.tensor.Type, c.tensor.Dims) }

// digester reads contents and counts what it read.
type digester struct {
	read    int64
	say     func(read int64) error
	digests map[*onnx.Tensor][sha256.Size]byte
}

func (d *digester) of(c constant) (sum [sha256.Size]byte, err error) {
	if sum, ok := d.digests[c.tensor]; ok {
		return sum, nil
	}
	h := sha256.New()
	if c.tensor.Type == onnx.String {
		err = digestStrings(h, c.tensor)
	} else {
		err = c.model.WriteContents(c.tensor, &counter{h, d})
	}
	sum = [sha256.Size]byte(h.Sum(nil))
	if err == nil {
		d.digests[c.tensor] = sum
	}
	return sum, err
}

func digestStrings(h hash.Hash, t *onnx.Tensor) error {
	texts, err := t.Strings()
	for _, s := range texts {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return err
}

// counter counts what is written to a hash.
type counter struct {
	hash.Hash
	d *digester
}

func (c *counter) Write(b []byte) (int, error) {
	c.d.read += int64(len(b))
	if err := c.d.say(c.d.read); err != nil {
		return 0, err
	}
	return c.Hash.Write(b)
}

// same says whether two constants hold the same.
func (d *digester) same(a, b constant) (bool, error) {
	if a.text() != b.text() {
		return false, nil
	}
	if a.tensor.SharesContents(b.tensor) {
		return true, nil
	}
	x, err := d.of(a)
	if err != nil {
		return false, err
	}
	y, err := d.of(b)
	return x == y, err
}

// compareWeights compares constants by their names, and what is left by contents. say
// is told the bytes read; an error from it ends the comparison.
func compareWeights(a, b *onnx.Model, say func(read int64) error) (w Weights, err error) {
	w = Weights{Changed: []Change{}, Renamed: []Change{}, OnlyA: []Change{}, OnlyB: []Change{}, Unread: []Unread{}}
	d := &digester{say: say, digests: map[*onnx.Tensor][sha256.Size]byte{}}
	byName := map[string]constant{}
	for _, c := range constants(b) {
		byName[c.name] = c
	}
	var onlyA []constant
	for _, x := range constants(a) {
		y, ok := byName[x.name]
		if !ok {
			onlyA = append(onlyA, x)
			continue
		}
		delete(byName, x.name)
		same, err := d.same(x, y)
		switch {
		case unreadable(err):
			w.Unread = append(w.Unread, Unread{x.name, err.Error()})
		case err != nil:
			return w, err
		case same:
			w.Same++
		default:
			w.Changed = append(w.Changed, Change{x.name, d.describe(x), d.describe(y)})
		}
	}
	var onlyB []constant
	for _, c := range constants(b) {
		if _, left := byName[c.name]; left {
			onlyB = append(onlyB, c)
		}
	}
	if err := w.rename(d, onlyA, onlyB); err != nil {
		return w, err
	}
	w.Read = d.read
	return w, nil
}

// CompareWeights returns the first constant that two models have by one name and that holds something else; nil where
// there is none.
func CompareWeights(a, b *onnx.Model, say func(read int64) error) (*Difference, error) {
	w, err := compareWeights(a, b, say)
	if err != nil || len(w.Changed) == 0 {
		return nil, err
	}
	return &Difference{What: fmt.Sprintf("the weight %q has different numbers", short.Name(w.Changed[0].Name)), Altered: true}, nil
}

// rename pairs constants of other names that hold the same. Contents are read where
// type and shape are the same.
func (w *Weights) rename(d *digester, onlyA, onlyB []constant) error {
	shapes := map[string]bool{}
	for _, x := range onlyA {
		shapes[x.text()] = true
	}
	type contents struct {
		text string
		sum  [sha256.Size]byte
	}
	left := map[contents][]string{} // names in B
	for _, y := range onlyB {
		if !shapes[y.text()] {
			continue
		}
		sum, err := d.of(y)
		switch key := (contents{y.text(), sum}); {
		case unreadable(err):
			w.Unread = append(w.Unread, Unread{y.name, err.Error()})
		case err != nil:
			return err
		default:
			left[key] = append(left[key], y.name)
		}
	}
	renamed := map[string]bool{}
	for _, x := range onlyA {
		sum, err := [sha256.Size]byte{}, fs.ErrNotExist
		if len(left) > 0 {
			sum, err = d.of(x)
		}
		key := contents{x.text(), sum}
		switch names := left[key]; {
		case err != nil && !unreadable(err):
			return err
		case err == nil && len(names) > 0:
			w.Renamed = append(w.Renamed, Change{Name: x.name, A: x.name, B: names[0]})
			left[key], renamed[names[0]] = names[1:], true
		default:
			w.OnlyA = append(w.OnlyA, Change{Name: x.name, A: x.text()})
		}
	}
	for _, y := range onlyB {
		if !renamed[y.name] {
			w.OnlyB = append(w.OnlyB, Change{Name: y.name, B: y.text()})
		}
	}
	return nil
}

// unreadable says whether an error is about contents that are not there. What is there
// and too short is damage.
func unreadable(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// describe is a constant's type, shape and, where it was read, digest.
func (d *digester) describe(c constant) string {
	if sum, ok := d.digests[c.tensor]; ok {
		return fmt.Sprintf("%s sha256:%x", c.text(), sum[:6])
	}
	return c.text()
}
