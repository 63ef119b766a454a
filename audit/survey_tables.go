package audit

import "github.com/rope-rewrite/rope-rewrite/onnx"

// cosines says at which input a fused op of another project reads its table of cosines.
var cosines = map[[2]string]int{
	{"com.microsoft", "GroupQueryAttention"}: 7,
	{"com.microsoft", "RotaryEmbedding"}:     2,
	{"", "RotaryEmbedding"}:                  1,
}

// tablePositions returns how many positions the smallest table of cosines has that is
// a constant, 0 where there is none. Of a table that an If chooses it is the largest.
func tablePositions(g *onnx.Graph) int64 {
	rows := map[string]int64{}
	for inner := range g.AllGraphs() {
		constantRows(inner, rows)
	}
	for inner := range g.AllGraphs() {
		chosenRows(inner, rows)
	}
	var least int64
	for n := range g.AllNodes() {
		at, ok := cosines[[2]string{n.Domain, n.OpType}]
		if !ok || at >= len(n.Inputs) {
			continue
		}
		if have := rows[n.Inputs[at]]; have > 0 && (least == 0 || have < least) {
			least = have
		}
	}
	return least
}

// constantRows notes the rows of the constants of a graph that are tables.
func constantRows(g *onnx.Graph, rows map[string]int64) {
	note := func(name string, t *onnx.Tensor) {
		if t != nil && len(t.Dims) == 2 {
			rows[name] = t.Dims[0]
		}
	}
	for _, t := range g.Initializers {
		note(t.Name, t)
	}
	for _, n := range g.Nodes {
		if n.OpType == "Constant" && n.Domain == "" && len(n.Outputs) == 1 {
			note(n.Outputs[0], n.Tensor("value"))
		}
	}
}

// chosenRows notes the rows of what the Ifs of a graph choose.
func chosenRows(g *onnx.Graph, rows map[string]int64) {
	for _, n := range g.Nodes {
		if n.OpType != "If" || n.Domain != "" {
			continue
		}
		for branch := range n.Subgraphs() {
			for i, out := range branch.Outputs {
				if i < len(n.Outputs) {
					rows[n.Outputs[i]] = max(rows[n.Outputs[i]], rows[out.Name])
				}
			}
		}
	}
}
