package graph

import (
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused/groupquery"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused/msmatmul"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused/msrotary"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused/multihead"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused/onnxattention"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused/onnxcast"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused/onnxeinsum"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused/onnxrotary"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused/rmsnorm"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Adapters returns one adapter for each op that is read as primitive nodes.
func Adapters() []fused.Adapter {
	return []fused.Adapter{
		groupquery.Adapter(),
		msmatmul.Adapter(),
		msrotary.Adapter(),
		multihead.Adapter(),
		onnxattention.Adapter(),
		onnxcast.Adapter(),
		onnxeinsum.Adapter(),
		onnxrotary.Adapter(),
		rmsnorm.Simplified(),
		rmsnorm.Standard(),
	}
}

// adapterOf returns the adapter for a node's op, nil when there is none.
func adapterOf(table []fused.Adapter, n *onnx.Node) *fused.Adapter {
	for i, a := range table {
		if a.OpType == n.OpType && a.Domain == ir.Domain(n.Domain) {
			return &table[i]
		}
	}
	return nil
}
