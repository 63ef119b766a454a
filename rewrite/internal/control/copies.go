package control

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Copy is the piece with other numbers.
type Copy struct {
	*eval.Piece
	runs  [][]int64
	place []int64 // of each run: what its first number is in the copy
}

// Least is the smallest number that a copy has in the place of a large one.
const Least = 2

// Copies yields the piece with every number of Runs, but those of a run that keep holds, replaced by one from
// Least to Small: in every way in which the numbers keep their order, and those of a run their distances.
func (c *Part) Copies(keep func(number int64) bool) iter.Seq[Copy] {
	runs := slices.DeleteFunc(slices.Clone(c.Runs), func(run []int64) bool { return slices.ContainsFunc(run, keep) })
	return func(yield func(Copy) bool) {
		if len(runs) == 0 {
			return
		}
		place := make([]int64, len(runs))
		var choose func(run int, from int64) bool
		choose = func(run int, from int64) bool {
			if run == len(runs) {
				return yield(c.copied(runs, slices.Clone(place)))
			}
			for at := from; at+int64(len(runs[run]))-1 <= Small; at++ {
				place[run] = at
				if !choose(run+1, at+int64(len(runs[run]))) {
					return false
				}
			}
			return true
		}
		choose(0, Least)
	}
}

// Fits reports whether there is a copy: so many numbers have room in order.
func (c *Part) Fits(keep func(number int64) bool) bool {
	total := 0
	for _, run := range c.Runs {
		if !slices.ContainsFunc(run, keep) {
			total += len(run)
		}
	}
	return total <= Small-Least+1
}

// copied writes a copy.
func (c *Part) copied(runs [][]int64, place []int64) Copy {
	q := *c.piece
	q.Nodes, q.Consts = slices.Clone(q.Nodes), slices.Clone(q.Consts)
	out := Copy{Piece: &q, runs: runs, place: place}
	changed := map[*onnx.Node]*onnx.Node{}
	for i, r := range c.readers {
		number := out.Of(r.number)
		if number == r.number {
			continue
		}
		x, _ := r.tensor.Float64s() // read before
		if x[0] < 0 {
			number = -number
		}
		t := numberLike(r.tensor, fmt.Sprintf("rope-rewrite/number%d", i), number)
		q.Consts = append(q.Consts, t)
		n := changed[r.node]
		if n == nil {
			clone := *r.node
			n = &clone
			n.Inputs = slices.Clone(n.Inputs)
			changed[r.node] = n
			q.Nodes[slices.Index(q.Nodes, r.node)] = n
		}
		n.Inputs[r.input] = t.Name
	}
	return out
}

// Of returns what a number of the piece is in the copy.
func (c Copy) Of(number int64) int64 { return c.within(number, 0) }

// Near returns what a number is in the copy that is at most one off from one of the piece's.
func (c Copy) Near(number int64) int64 { return c.within(number, 1) }

func (c Copy) within(number, off int64) int64 {
	for i, run := range c.runs {
		if within(run, number, off) {
			return c.place[i] + number - run[0]
		}
	}
	return number
}

// Near reports whether a number is at most one off from one of the piece's.
func (c *Part) Near(number int64) bool {
	return slices.ContainsFunc(c.Runs, func(run []int64) bool { return within(run, number, 1) })
}

func within(run []int64, number, off int64) bool {
	return number >= run[0]-off && number <= run[len(run)-1]+off
}

// numberLike is a constant like another one, of one number.
func numberLike(t *onnx.Tensor, name string, number int64) *onnx.Tensor {
	if ir.IsFloat(t.Type) {
		return ir.FloatTensor(name, t.Type, t.Dims, float64(number))
	}
	if t.Type == onnx.Int32 {
		return onnx.NewTensor(name, t.Type, t.Dims, binary.LittleEndian.AppendUint32(nil, uint32(int32(number))))
	}
	return ir.Int64Tensor(name, t.Dims, number)
}
