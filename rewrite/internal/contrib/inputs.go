package contrib

import (
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// lengths writes seqlens_k [batch], the index of each row's last token, and
// total_sequence_length, both int32.
func lengths(b *ir.Builder, g *onnx.Graph, op customop.RotaryAttention) (last, total string) {
	query, rows := op.Query, int64(2)
	if r := rowsOf(g, op.Query); r != "" {
		query, rows = r, 1
	}
	length := b.Size(query, rows)
	if op.TotalLength != "" { // rows tell their lengths
		past := b.Add("Cast", []string{op.CacheLength}, onnx.IntAttr("to", int64(onnx.Int64)))
		tokens := b.Add("Add", []string{past, length})
		return int32s(b, b.Add("Sub", []string{tokens, b.Int(1)})), op.TotalLength
	}
	if op.CacheLength != "" {
		return fixedLengths(b, op, length)
	}
	past := ""
	if op.PastKey == "" {
		past = b.Int(0)
	} else {
		past = b.Size(op.PastKey, 2)
	}
	tokens := b.Add("Add", []string{past, length})
	tokens = guarded(b, op, tokens, b.Add("Range", []string{past, tokens, b.Int(1)}))
	last = b.Add("Expand", []string{b.Add("Sub", []string{tokens, b.Int(1)}), b.Sizes(query, 0, 1)})
	return int32s(b, last), int32s(b, tokens)
}

// fixedLengths writes the lengths of a cache of fixed capacity, whose rows tell how many tokens they hold.
func fixedLengths(b *ir.Builder, op customop.RotaryAttention, length string) (last, total string) {
	past := b.Add("Cast", []string{op.CacheLength}, onnx.IntAttr("to", int64(onnx.Int64)))
	tokens := b.Add("Add", []string{past, length})
	last = b.Add("Sub", []string{tokens, b.Int(1)})
	longest := b.Add("ReduceMax", []string{tokens}, onnx.IntAttr("keepdims", 0))
	fits := b.Add("Not", []string{b.Add("Greater", []string{longest, b.Size(op.PastKey, 2)})})
	longest = b.Guarded(longest, "a cache of fixed capacity has no room for the new tokens", ones(b, fits))
	indices := b.Add("Add", []string{b.Add("Reshape", []string{past, b.Ints(-1, 1)}), b.Add("Range", []string{b.Int(0), length, b.Int(1)})})
	return int32s(b, last), int32s(b, guarded(b, op, longest, indices))
}

// guarded is a number of tokens that can be had only where the mask hides none, and positions are the
// indices of tokens.
func guarded(b *ir.Builder, op customop.RotaryAttention, tokens, indices string) string {
	if op.AttentionMask != "" {
		tokens = b.Guarded(tokens, "the mask hides a token, which GroupQueryAttention does not know", op.AttentionMask)
	}
	if op.PositionIDs != "" {
		tokens = b.Guarded(tokens, "a position is not the index of its token, as GroupQueryAttention counts", ones(b, b.Add("Equal", []string{op.PositionIDs, indices})))
	}
	return tokens
}

// ones is 1 where a value is true, else 0.
func ones(b *ir.Builder, value string) string {
	return b.Add("Cast", []string{value}, onnx.IntAttr("to", int64(onnx.Int64)))
}

// unshared is a cache that ONNX Runtime's planner does not put the present one into. Where a
// node makes the past of a call, such as a Cast, it takes past and present for tensors of one
// shape (both are named alike) and has the operator write into the past's memory, which is
// too small by the new tokens. A shape that is computed tells it nothing.
func unshared(b *ir.Builder, g *onnx.Graph, past string) string {
	for _, n := range g.Nodes {
		if past != "" && slices.Contains(n.Outputs, past) {
			return b.Add("Reshape", []string{past, b.Add("Abs", []string{b.Add("Shape", []string{past})})})
		}
	}
	return past
}

func int32s(b *ir.Builder, v string) string {
	return b.Add("Cast", []string{v}, onnx.IntAttr("to", int64(onnx.Int32)))
}

// sharing tells ops apart whose lengths differ: all of one mask or one count have the same.
func sharing(op customop.RotaryAttention) string {
	return strings.Join([]string{op.TotalLength, op.CacheLength, op.AttentionMask, op.PositionIDs}, "\n")
}
