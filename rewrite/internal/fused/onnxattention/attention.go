package onnxattention

import (
	"errors"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
)

// Adapter reads the standard op Attention.
func Adapter() fused.Adapter {
	return fused.Adapter{OpType: "Attention", Attention: true, Expand: expand}
}

// attention is a node read and checked.
type attention struct {
	node                    *onnx.Node
	query, key, value, mask string
	pastKey, pastValue      string
	lengths                 string  // how many keys of each row are tokens, int64 [batch]; "" is all
	boolean                 bool    // the mask is of truth values, else it is added to the scores
	flat                    bool    // 3-D inputs: heads and channels share an axis
	heads, keyHeads         int64   // of 3-D inputs
	scale                   float64 // 0 is 1/√head_size
	softcap                 float64 // 0 is none
	causal                  bool
	element                 onnx.DataType
}

func read(n *onnx.Node, c fused.Context) (*attention, error) {
	if err := fused.Known(n, "is_causal", "kv_num_heads", "q_num_heads", "qk_matmul_output_mode", "scale", "softcap", "softmax_precision"); err != nil {
		return nil, err
	}
	if err := fused.Arity(n, 3, 7, 4); err != nil {
		return nil, err
	}
	if fused.Output(n, 3) != "" {
		return nil, errors.New("the node outputs the product of query and key (qk_matmul_output)")
	}
	a := &attention{node: n, query: n.Inputs[0], key: n.Inputs[1], value: n.Inputs[2],
		mask: fused.Input(n, 3), pastKey: fused.Input(n, 4), pastValue: fused.Input(n, 5), lengths: fused.Input(n, 6)}
	if (a.pastKey == "") != (a.pastValue == "") {
		return nil, errors.New("the node has only one of past_key and past_value")
	}
	if a.pastKey != "" && (fused.Output(n, 1) == "" || fused.Output(n, 2) == "") {
		return nil, errors.New("the node has past_key and past_value without present_key and present_value")
	}
	if a.lengths != "" && a.pastKey != "" {
		return nil, errors.New("the node has both past_key and nonpad_kv_seqlen, which is for a cache outside it")
	}
	a.element = c.Type(a.query)
	if err := a.attributes(); err != nil {
		return nil, err
	}
	return a, a.types(c)
}

// attributes reads what the node's attributes say.
func (a *attention) attributes() error {
	n := a.node
	causal, err := fused.Int(n, "is_causal", 0, 0, 1)
	if err != nil {
		return err
	}
	a.causal = causal == 1
	if a.heads, err = fused.Int(n, "q_num_heads", 0, 1, fused.MaxHeads); err != nil {
		return err
	}
	if a.keyHeads, err = fused.Int(n, "kv_num_heads", 0, 1, fused.MaxHeads); err != nil {
		return err
	}
	switch {
	case (a.heads == 0) != (a.keyHeads == 0):
		return errors.New("the node has only one of q_num_heads and kv_num_heads")
	case a.heads > 0 && a.heads%a.keyHeads != 0:
		return fmt.Errorf("its q_num_heads %d is not a multiple of its kv_num_heads %d", a.heads, a.keyHeads)
	}
	if a.scale, err = fused.Float(n, "scale", 0); err != nil {
		return err
	}
	if n.Attribute("scale") != nil && a.scale <= 0 {
		return fmt.Errorf("its scale is %g", a.scale)
	}
	if a.softcap, err = fused.Float(n, "softcap", 0); err != nil {
		return err
	}
	if a.softcap < 0 {
		return fmt.Errorf("its softcap is %g", a.softcap)
	}
	precision, err := fused.Int(n, "softmax_precision", int64(onnx.Float), 0, math.MaxInt32)
	if err != nil {
		return err
	}
	if p := onnx.DataType(precision); p != onnx.Undefined && p != onnx.Float && p != onnx.Double {
		return fmt.Errorf("its softmax_precision %d is less than float32", precision)
	}
	return nil
}

// types reads ranks and the kind of mask.
func (a *attention) types(c fused.Context) error {
	if a.heads > 0 {
		rank, ok := c.Rank(a.query)
		if ok && rank != 3 && rank != 4 {
			return fmt.Errorf("its query %q has %d dimensions, expected 3 or 4", short.Name(a.query), rank)
		}
		a.flat = !ok || rank == 3 // the op has the numbers of heads for 3-D inputs
	}
	if a.mask == "" {
		return nil
	}
	switch c.Type(a.mask) {
	case onnx.Bool:
		a.boolean = true
	case onnx.Float, onnx.Float16, onnx.BFloat16, onnx.Double:
	default:
		return fmt.Errorf("the graph does not say what type its mask %q has", short.Name(a.mask))
	}
	return nil
}

func expand(n *onnx.Node, c fused.Context) (*fused.Expansion, error) {
	a, err := read(n, c)
	if err != nil {
		return nil, err
	}
	b := fused.NewBuilder(n)
	query := a.split(b, a.query, a.heads)
	key := a.store(b, 1, a.pastKey, a.split(b, a.key, a.keyHeads))
	value := a.store(b, 2, a.pastValue, a.split(b, a.value, a.keyHeads))
	heads := b.Sizes(query, 1, 2)
	scores := b.Add("MatMul", []string{query, b.Add("Transpose", []string{repeat(b, key, heads)}, onnx.IntsAttr("perm", 0, 1, 3, 2))})
	scores = b.Add("Mul", []string{scores, a.factor(b, query)})
	if a.softcap > 0 {
		limit := b.Float(a.softcap, a.element)
		scores = b.Add("Mul", []string{b.Add("Tanh", []string{b.Add("Div", []string{scores, limit})}), limit})
	}
	if a.mask != "" {
		bias := a.mask
		if a.boolean {
			bias = a.bias(b, a.mask)
		}
		scores = b.Add("Add", []string{scores, bias})
	}
	if a.lengths != "" {
		scores = b.Add("Add", []string{scores, a.bias(b, a.filled(b, key))})
	}
	if a.causal {
		scores = b.Add("Add", []string{scores, a.bias(b, a.earlier(b, query, key))})
	}
	// A query that sees no key gives zeros.
	p := b.Add("Softmax", []string{scores}, onnx.IntAttr("axis", -1))
	p = b.Add("Where", []string{b.Add("IsNaN", []string{p}), b.Float(0, a.element), p})
	used := repeat(b, value, heads)
	if !a.flat {
		b.AddTo(n.Outputs[0], "MatMul", []string{p, used})
		return b.Expansion(), nil
	}
	rows := b.Add("Transpose", []string{b.Add("MatMul", []string{p, used})}, onnx.IntsAttr("perm", 0, 2, 1, 3))
	b.AddTo(n.Outputs[0], "Reshape", []string{rows, b.Ints(0, 0, -1)})
	return b.Expansion(), nil
}

// split brings a 3-D input into [batch, heads, length, channels].
func (a *attention) split(b *fused.Builder, value string, heads int64) string {
	if !a.flat {
		return value
	}
	return b.Add("Transpose", []string{b.Add("Reshape", []string{value, b.Ints(0, 0, heads, -1)})}, onnx.IntsAttr("perm", 0, 2, 1, 3))
}

// store appends new keys or values to the past ones, and makes the output that
// gives all of them.
func (a *attention) store(b *fused.Builder, output int, past, fresh string) string {
	present := fused.Output(a.node, output)
	switch {
	case past != "":
		return b.AddTo(present, "Concat", []string{past, fresh}, onnx.IntAttr("axis", 2))
	case present != "":
		b.AddTo(present, "Identity", []string{fresh})
	}
	return fresh
}

// repeat gives each head of a group its own copy: kv head h serves the heads
// h·group to (h+1)·group − 1.
func repeat(b *fused.Builder, value, heads string) string {
	group := b.Add("Div", []string{heads, b.Sizes(value, 1, 2)})
	one := b.Ints(1)
	wide := b.Add("Expand", []string{b.Add("Unsqueeze", []string{value, b.Ints(2)}),
		b.Add("Concat", []string{one, one, group, one, one}, onnx.IntAttr("axis", 0))})
	return b.Add("Reshape", []string{wide,
		b.Add("Concat", []string{b.Sizes(value, 0, 1), heads, b.Sizes(value, 2, 4)}, onnx.IntAttr("axis", 0))})
}

// factor is what the product of query and key is multiplied by.
func (a *attention) factor(b *fused.Builder, query string) string {
	if a.scale > 0 {
		return b.Float(a.scale, a.element)
	}
	element := a.element
	if element == onnx.Undefined {
		element = onnx.Float
	}
	size := b.Add("Cast", []string{b.Size(query, 3)}, onnx.IntAttr("to", int64(element)))
	return b.Add("Reciprocal", []string{b.Add("Sqrt", []string{size})})
}

// bias is 0 where a key is visible and −∞ where it is not.
func (a *attention) bias(b *fused.Builder, visible string) string {
	return b.Add("Where", []string{visible, b.Float(0, a.element), b.Float(math.Inf(-1), a.element)})
}

// earlier says which keys are at or before a query: j ≤ past + i, where past is what a row has
// beside the queries.
func (a *attention) earlier(b *fused.Builder, query, key string) string {
	past, length := b.Int(0), b.Size(query, 2)
	if a.pastKey != "" {
		past = b.Size(a.pastKey, 2)
	}
	zero, one := b.Int(0), b.Int(1)
	i := b.Add("Range", []string{past, b.Add("Add", []string{past, length}), one})
	j := b.Add("Range", []string{zero, b.Size(key, 2), one})
	column := b.Add("Unsqueeze", []string{i, b.Ints(1)})
	if a.lengths != "" {
		column = b.Add("Add", []string{column, b.Add("Sub", []string{a.perRow(b), length})})
	}
	return b.Add("LessOrEqual", []string{j, column})
}

// filled says which keys are tokens: the first ones of each row.
func (a *attention) filled(b *fused.Builder, key string) string {
	j := b.Add("Range", []string{b.Int(0), b.Size(key, 2), b.Int(1)})
	return b.Add("Less", []string{j, a.perRow(b)})
}

// perRow is how many keys of each row are tokens, [batch, 1, 1, 1].
func (a *attention) perRow(b *fused.Builder) string {
	return b.Add("Reshape", []string{a.lengths, b.Ints(-1, 1, 1, 1)})
}
