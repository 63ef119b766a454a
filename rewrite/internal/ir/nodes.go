package ir

import (
	"slices"
	"strconv"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Domain returns a domain, with "" for both names of the standard domain.
func Domain(name string) string {
	if name == "ai.onnx" {
		return ""
	}
	return name
}

// Label names a node in messages: its name, or its op and first output, shortened where they are long.
func Label(n *onnx.Node) string {
	return label(n, short.Name[string])
}

// FullLabel is Label without shortening: it tells nodes apart in reports and records.
func FullLabel(n *onnx.Node) string {
	return label(n, func(name string) string { return name })
}

func label(n *onnx.Node, shown func(string) string) string {
	switch {
	case n.Name != "":
		return shown(n.Name)
	case len(n.Outputs) > 0:
		return shown(n.OpType) + " making " + strconv.Quote(shown(n.Outputs[0]))
	}
	return shown(n.OpType)
}

// Standard reports whether n is a standard ONNX op of one of these names; nil is none.
func Standard(n *onnx.Node, ops ...string) bool {
	return n != nil && (n.Domain == "" || n.Domain == "ai.onnx") && slices.Contains(ops, n.OpType)
}

// Scatters reports whether n writes elements into a larger value. TorchScript writes
// the assignment of a slice, key[..., 16:] = rotated, as a ScatterND whose indices it
// computes for every element.
func Scatters(n *onnx.Node) bool { return Standard(n, "ScatterND") && len(n.Inputs) == 3 }

// Cast returns a node that casts one value to an element type.
func Cast(from, to string, t onnx.DataType) *onnx.Node {
	return onnx.NewNode("Cast", []string{from}, []string{to}, onnx.IntAttr("to", int64(t)))
}

// Renamed returns copies of the nodes with other names for some values; names maps
// old to new. Sub-graphs are not renamed.
func Renamed(nodes []*onnx.Node, names map[string]string) []*onnx.Node {
	if len(names) == 0 {
		return nodes
	}
	out := make([]*onnx.Node, len(nodes))
	for i, n := range nodes {
		out[i] = n.Clone()
		for _, list := range [][]string{out[i].Inputs, out[i].Outputs} {
			for k, v := range list {
				if s := names[v]; s != "" {
					list[k] = s
				}
			}
		}
	}
	return out
}

// MaxRank is the largest rank of a tensor that ONNX Runtime is given: it crashes on
// absurd ranks, and models use at most 6 or so.
const MaxRank = 16

// Unique returns the list without repetitions, in the order of first appearance.
func Unique(list []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, v := range list {
		if !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	return out
}
