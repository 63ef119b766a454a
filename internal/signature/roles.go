package signature

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Role is what an input of a model is for.
type Role uint8

const (
	Tokens      Role = iota + 1 // token ids [batch, length]
	Positions                   // [batch, length]
	TokenTypes                  // [batch, length], zeros
	Padding                     // [batch, past + length], 1 for a token and 0 for padding
	Documents                   // document ids [batch, past + length]
	CacheLength                 // tokens that each row of a fixed cache holds [batch]
	Past                        // keys or values [batch, kv heads, past or capacity, head size], or of int8 the scales of their rows [..., 1]
	Places                      // of the token in each row whose logits are computed, [batch] or [1]
	Memory                      // keys or values that an encoder gave [batch, kv heads, rows, head size]; every call reads them
	Branch                      // [1], whether a merged model goes on after a past, not 0, or begins
	Passed                      // a number without dimensions that the model gives back and reads nowhere else
)

// byName are the roles of names that exporters and the rewriter give.
var byName = map[string]Role{
	"input_ids": Tokens, "position_ids": Positions, "token_type_ids": TokenTypes, "attention_mask": Padding,
	"document_ids": Documents, "cache_length": CacheLength, // where no op of the graph reads them
	"use_cache_branch": Branch,
}

// roleOf says what an input is for, or 0. read are the roles of what the op
// reads. Token ids stay that where the op hides a token by its id.
func roleOf(v *onnx.ValueInfo, read map[string]Role) Role {
	switch {
	case (isFloat(v.Type) || v.Type == onnx.Int8) && len(v.Shape) == 4:
		return Past
	case read[v.Name] != 0 && byName[v.Name] != Tokens:
		return read[v.Name]
	}
	return byName[v.Name]
}

// passedOn are, by the outputs that give them back, the inputs without dimensions that a graph reads nowhere else:
// transformers' exporter makes one of the window of each layer's cache.
func passedOn(g *onnx.Graph) map[string]string {
	number := func(v *onnx.ValueInfo) bool { return v.Type == onnx.Int64 && v.HasShape && len(v.Shape) == 0 }
	readers := map[string]int{} // of each value, less the outputs that give it back
	for n := range g.AllNodes() {
		for _, in := range n.Inputs {
			readers[in]++
		}
	}
	back := map[string]string{}
	for _, n := range g.Nodes {
		if n.OpType != "Identity" || n.Domain != "" {
			continue
		}
		if slices.ContainsFunc(g.Outputs, func(v *onnx.ValueInfo) bool { return v.Name == n.Outputs[0] && number(v) }) {
			back[n.Outputs[0]] = n.Inputs[0]
			readers[n.Inputs[0]]--
		}
	}
	maps.DeleteFunc(back, func(_, in string) bool {
		return readers[in] > 0 || !slices.ContainsFunc(g.Inputs, func(v *onnx.ValueInfo) bool { return v.Name == in && number(v) })
	})
	return back
}

// placesLogits reports whether an input says of which token of each row the logits are
// computed, as the rewriter adds one: whole numbers, as many as there are rows or one, -1 where
// nothing is fed.
func placesLogits(v *onnx.ValueInfo, otherwise *onnx.Tensor) bool {
	if v.Type != onnx.Int64 || len(v.Shape) != 1 || v.Shape[0].Known() || otherwise.Type != onnx.Int64 || !slices.Equal(otherwise.Dims, []int64{1}) {
		return false
	}
	b, err := otherwise.Bytes()
	return err == nil && len(b) == 8 && int64(binary.LittleEndian.Uint64(b)) == -1
}

// readByOp are the values that the op's nodes read as positions, mask, document ids or the
// length of a fixed cache, whatever their names.
func readByOp(g *onnx.Graph) map[string]Role {
	read := map[string]Role{}
	for name, role := range map[string]Role{
		"document_ids": Documents, "cache_length": CacheLength, "position_ids": Positions, "attention_mask": Padding,
	} {
		for _, n := range g.Nodes {
			if v := opInput(n, name); v != "" {
				read[v] = role
			}
		}
	}
	return read
}

// opInput is what a node of an op of the project reads as the input of a name, "" where it reads none.
func opInput(n *onnx.Node, name string) string {
	if n.Domain != customop.Domain {
		return ""
	}
	spec, known := customop.SpecOf(n.OpType)
	if !known {
		return ""
	}
	at := slices.IndexFunc(spec.Inputs, func(v customop.Value) bool { return v.Name == name })
	if at < 0 || at >= len(n.Inputs) {
		return ""
	}
	return n.Inputs[at]
}

func isFloat(t onnx.DataType) bool {
	return t == onnx.Float || t == onnx.Float16 || t == onnx.BFloat16 || t == onnx.Double
}
