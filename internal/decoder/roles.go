package decoder

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// role is what an input of a model is for.
type role uint8

const (
	tokens      role = iota + 1 // [batch, length]
	positions                   // [batch, length]
	types                       // [batch, length], zeros
	padding                     // [batch, past + length]
	documents                   // [batch, past + length]
	cacheLength                 // [batch]
	past                        // [batch, kv heads, past or capacity, head size]
)

// usual are the names that exporters give.
var usual = map[string]role{
	"input_ids": tokens, "position_ids": positions, "token_type_ids": types, "attention_mask": padding,
	"document_ids": documents, // where no op reads them
}

// roles says what each input is for: caches by their shape, what the op added
// by where its nodes read it, the rest by the names that exporters give.
func roles(g *onnx.Graph, inputs []*onnx.ValueInfo) (map[string]role, error) {
	read := map[string]role{}
	for _, slot := range []struct {
		name string
		role role
	}{{"document_ids", documents}, {"cache_length", cacheLength}} {
		at := slices.IndexFunc(customop.RotaryAttentionSpec.Inputs, func(v customop.Value) bool { return v.Name == slot.name })
		for _, n := range g.Nodes {
			if n.Domain == customop.Domain && at < len(n.Inputs) && n.Inputs[at] != "" {
				read[n.Inputs[at]] = slot.role
			}
		}
	}
	found := map[string]role{}
	for _, v := range inputs {
		switch {
		case isFloat(v.Type) && len(v.Shape) == 4:
			found[v.Name] = past
		case read[v.Name] != 0:
			found[v.Name] = read[v.Name]
		case usual[v.Name] != 0:
			found[v.Name] = usual[v.Name]
		default:
			return nil, fmt.Errorf("the input %q is none that can be fed here (input_ids, attention_mask, position_ids, caches and what the rewriter adds can)", v.Name)
		}
	}
	return found, nil
}
