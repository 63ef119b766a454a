package groupquery

import (
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
)

// Adapter reads com.microsoft GroupQueryAttention.
func Adapter() fused.Adapter {
	write := func(form func(*op, *fused.Builder)) func(*onnx.Node, fused.Context) (*fused.Expansion, error) {
		return func(n *onnx.Node, c fused.Context) (*fused.Expansion, error) {
			o, err := read(n, c)
			if err != nil {
				return nil, err
			}
			b := fused.NewBuilder(n)
			form(o, b)
			e := b.Expansion()
			e.Cache = &fused.LengthTrackedCache{Last: o.lengths, Total: o.total, Limit: o.tableRows}
			e.Dims = map[string]map[int]int64{o.pastKey: {1: o.kvHeads, 3: o.headSize}, o.pastValue: {1: o.kvHeads, 3: o.headSize}}
			return e, nil
		}
	}
	return fused.Adapter{
		Domain: "com.microsoft", OpType: "GroupQueryAttention", Attention: true,
		Expand: write((*op).expand), Define: write((*op).define),
	}
}
