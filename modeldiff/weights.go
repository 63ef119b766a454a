package modeldiff

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

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

func newDigester(say func(read int64) error) *digester {
	return &digester{say: say, digests: map[*onnx.Tensor][sha256.Size]byte{}}
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

// compareWeights compares constants by their names, and what is left by contents: those that hold the same are renamed.
func (r *Report) compareWeights(d *digester, a, b *onnx.Model) error {
	byName := map[string]constant{}
	for _, c := range constants(b) {
		byName[c.name] = c
	}
	var onlyA []constant
	var unread []error
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
			unread = append(unread, err)
		case err != nil:
			return err
		case same:
			r.SameWeights++
		default:
			r.add(Weight, []Difference{{Where: x.name, Expected: d.describe(x), Found: d.describe(y)}})
		}
	}
	if len(unread) > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d weights are not compared: %v", len(unread), unread[0]))
	}
	onlyB := slices.DeleteFunc(constants(b), func(c constant) bool { return byName[c.name] != c })
	shaped := map[string][]constant{} // in B, by type and shape: others cannot hold the same
	for _, y := range onlyB {
		shaped[y.text()] = append(shaped[y.text()], y)
	}
	for _, x := range onlyA {
		renamed := constant{}
		for _, y := range shaped[x.text()] {
			same, err := d.same(x, y)
			if err != nil && !unreadable(err) {
				return err
			}
			if same {
				renamed = y
				break
			}
		}
		if renamed.tensor == nil {
			r.add(OnlyA, []Difference{{Where: x.name, Expected: x.text()}})
			continue
		}
		r.add(Renamed, []Difference{{Where: x.name, Expected: x.name, Found: renamed.name}})
		isIt := func(c constant) bool { return c == renamed }
		shaped[x.text()], onlyB = slices.DeleteFunc(shaped[x.text()], isIt), slices.DeleteFunc(onlyB, isIt)
	}
	for _, y := range onlyB {
		r.add(OnlyB, []Difference{{Where: y.name, Found: y.text()}})
	}
	r.Read = d.read
	return nil
}

// CompareWeights returns the first constant that two models have by one name and that holds something else; nil where
// there is none.
func CompareWeights(a, b *onnx.Model, say func(read int64) error) (*FileDifference, error) {
	r := &Report{}
	err := r.compareWeights(newDigester(say), a, b)
	if changed := r.Of(Weight); len(changed) > 0 && err == nil {
		return altered(fmt.Sprintf("the weight %q", short.Name(changed[0].Where)), "has different numbers"), nil
	}
	return nil, err
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
