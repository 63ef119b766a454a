package decoder

import (
	"context"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// countsTokens reports whether a model counts the tokens of each row, as
// GroupQueryAttention does and the op that takes its place.
func countsTokens(m *onnx.Model) bool {
	total := slices.IndexFunc(customop.RotaryAttentionSpec.Inputs, func(v customop.Value) bool { return v.Name == "total_length" })
	return slices.ContainsFunc(m.Graph.Nodes, func(n *onnx.Node) bool {
		return n.Domain == "com.microsoft" && n.OpType == "GroupQueryAttention" ||
			n.Domain == customop.Domain && total < len(n.Inputs) && n.Inputs[total] != ""
	})
}

// closeHeadSize fills in the last dimension of a cache input that leaves it open.
func (d *Decoder) closeHeadSize(m *onnx.Model, v *onnx.ValueInfo) error {
	if v.Shape[3].Known() {
		return nil
	}
	size := headSize(m, v.Name)
	if size == 0 {
		return fmt.Errorf("%s: the cache input %q leaves its last dimension open, and the model does not tell it elsewhere", d.path, v.Name)
	}
	v.Shape[3] = onnx.Dim{Value: size}
	return nil
}

// headSize finds the last dimension of a cache input that leaves it open, from
// the heads of the attention that reads it and the declared width of what comes
// out of it; 0 when the model does not tell.
func headSize(m *onnx.Model, past string) int64 {
	reader := func(value string) *onnx.Node {
		i := slices.IndexFunc(m.Graph.Nodes, func(n *onnx.Node) bool { return slices.Contains(n.Inputs, value) })
		if i < 0 {
			return nil
		}
		return m.Graph.Nodes[i]
	}
	n := reader(past)
	if n == nil || n.Int("num_heads", 0) < 1 {
		return 0
	}
	heads := n.Int("num_heads", 0)
	for range 3 { // a transposition and a new shape may follow
		if n == nil || len(n.Outputs) == 0 {
			return 0
		}
		for _, v := range m.Graph.ValueInfo {
			if v.Name == n.Outputs[0] && len(v.Shape) == 3 && v.Shape[2].Known() {
				return v.Shape[2].Value / heads
			}
		}
		n = reader(n.Outputs[0])
	}
	return 0
}

// rowByRow evaluates each sequence of a batch by itself.
func (d *Decoder) rowByRow(ctx context.Context, s Sequence, lengths []int64) ([]float64, error) {
	var out []float64
	for b := range s.Batch {
		from, to := b*s.Length, (b+1)*s.Length
		row := Sequence{Batch: 1, Length: s.Length, IDs: s.IDs[from:to], Mask: s.Mask[from:to], Positions: s.Positions[from:to]}
		if s.Documents != nil {
			row.Documents = s.Documents[from:to]
		}
		logits, err := d.Chunks(ctx, row, lengths...)
		if err != nil {
			return nil, err
		}
		out = append(out, logits...)
	}
	return out, nil
}
