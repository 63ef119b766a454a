package eval

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// like writes a node that does what n does with other inputs. n itself may be written
// too.
func (r *rowChooser) like(n *onnx.Node, inputs []string, output string) {
	c := n.Clone()
	c.Name, c.Inputs, c.Outputs = "", inputs, []string{output}
	r.nodes = append(r.nodes, c)
}

// gather makes all of v and then takes the chosen rows.
func (r *rowChooser) gather(v, name string, axis int) error {
	if err := r.whole(v); err != nil {
		return err
	}
	r.nodes = append(r.nodes, onnx.NewNode("Gather", []string{v, RowsInput}, []string{name}, onnx.IntAttr("axis", int64(axis))))
	return nil
}

// list makes a constant list of integers.
func (r *rowChooser) list(name string, values ...int64) string {
	r.consts = append(r.consts, ir.Int64Tensor(name, []int64{int64(len(values))}, values...))
	return name
}

// scalar makes a constant of one integer.
func (r *rowChooser) scalar(name string, v int64) string {
	r.consts = append(r.consts, ir.Int64Tensor(name, []int64{}, v))
	return name
}

// step writes a node on the way to the value name and returns its output.
func (r *rowChooser) step(name, op string, inputs ...string) string {
	out := fmt.Sprintf("%s/%d", name, len(r.nodes))
	r.nodes = append(r.nodes, onnx.NewNode(op, inputs, []string{out}))
	return out
}
