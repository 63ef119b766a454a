package rewrite

import (
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/fused"
	"github.com/rope-rewrite/rope-rewrite/rewrite/groupquery"
	"github.com/rope-rewrite/rope-rewrite/rewrite/msmatmul"
	"github.com/rope-rewrite/rope-rewrite/rewrite/msrotary"
	"github.com/rope-rewrite/rope-rewrite/rewrite/multihead"
	"github.com/rope-rewrite/rope-rewrite/rewrite/onnxattention"
	"github.com/rope-rewrite/rope-rewrite/rewrite/onnxeinsum"
	"github.com/rope-rewrite/rope-rewrite/rewrite/onnxrotary"
)

// adapters lists the fused ops that are read as primitive nodes.
func adapters() []fused.Adapter {
	return []fused.Adapter{
		groupquery.Adapter(),
		msmatmul.Adapter(),
		msrotary.Adapter(),
		multihead.Adapter(),
		onnxattention.Adapter(),
		onnxeinsum.Adapter(),
		onnxrotary.Adapter(),
	}
}

// adapterOf returns the adapter of a node's op, nil when there is none.
func adapterOf(table []fused.Adapter, n *onnx.Node) *fused.Adapter {
	for i, a := range table {
		if a.OpType == n.OpType && a.Domain == domain(n.Domain) {
			return &table[i]
		}
	}
	return nil
}

// domain gives the standard domain one name.
func domain(name string) string {
	if name == "ai.onnx" {
		return ""
	}
	return name
}
