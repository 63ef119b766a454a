package multihead

import (
	"errors"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
)

// Adapter reads com.microsoft MultiHeadAttention.
func Adapter() fused.Adapter {
	return fused.Adapter{Domain: "com.microsoft", OpType: "MultiHeadAttention", Attention: true, Expand: expand}
}

// op is a node read and checked.
type op struct {
	node                   *onnx.Node
	query, key, value      string
	bias                   string
	padding, scoreBias     string // key_padding_mask, attention_bias
	pastKey, pastValue     string
	rank, maskRank         int // of key and value, of key_padding_mask
	heads                  int64
	width, valueWidth      int64   // of query and value; only with a bias
	scale                  float64 // 0 is 1/√channels
	filter                 float64 // added where key_padding_mask hides
	causal                 bool
	element                onnx.DataType
	presentKey, presentVal string
}

// inputs names the op's inputs by place; the last two are refused.
var inputs = []string{"query", "key", "value", "bias", "key_padding_mask", "attention_bias", "past_key", "past_value",
	"past_sequence_length", "cache_indirection"}

func read(n *onnx.Node, c fused.Context) (*op, error) {
	if err := fused.Known(n, "num_heads", "mask_filter_value", "scale", "unidirectional"); err != nil {
		return nil, err
	}
	if err := fused.Arity(n, 1, len(inputs), 4); err != nil {
		return nil, err
	}
	o := &op{node: n, element: c.Type(n.Inputs[0]), presentKey: fused.Output(n, 1), presentVal: fused.Output(n, 2)}
	for i, into := range []*string{&o.query, &o.key, &o.value, &o.bias, &o.padding, &o.scoreBias, &o.pastKey, &o.pastValue} {
		*into = fused.Input(n, i)
	}
	for i := 8; i < len(inputs); i++ {
		if fused.Input(n, i) != "" {
			return nil, fmt.Errorf("its input %s is not supported by this version", inputs[i])
		}
	}
	switch {
	case fused.Output(n, 3) != "":
		return nil, errors.New("the node outputs the product of query and key (qk)")
	case o.key == "" || o.value == "":
		return nil, errors.New("its query, key and value are packed into one input, which ONNX Runtime does not run on the CPU")
	case (o.pastKey == "") != (o.pastValue == ""):
		return nil, errors.New("the node has only one of past_key and past_value")
	case o.pastKey != "" && (o.presentKey == "" || o.presentVal == ""):
		return nil, errors.New("the node has past_key and past_value without present_key and present_value")
	}
	if err := o.attributes(); err != nil {
		return nil, err
	}
	return o, o.shapes(c)
}

func (o *op) attributes() error {
	n := o.node
	var causal int64
	for _, a := range []struct {
		into      *int64
		name      string
		def       int64
		low, high int64
	}{
		{&o.heads, "num_heads", 0, 1, fused.MaxHeads},
		{&causal, "unidirectional", 0, 0, 1},
	} {
		var err error
		if *a.into, err = fused.Int(n, a.name, a.def, a.low, a.high); err != nil {
			return err
		}
	}
	if o.heads == 0 {
		return errors.New("the node lacks its attribute num_heads")
	}
	o.causal = causal == 1
	var err error
	if o.scale, err = fused.Float(n, "scale", 0); err != nil {
		return err
	}
	if o.scale < 0 {
		return fmt.Errorf("its scale is %g", o.scale)
	}
	o.filter, err = fused.Float(n, "mask_filter_value", -10_000)
	return err
}

// shapes reads ranks and widths.
func (o *op) shapes(c fused.Context) error {
	rank := func(what, value string, allowed ...int) (int, error) {
		r, ok := c.Rank(value)
		if !ok {
			return 0, fmt.Errorf("the graph does not say how many dimensions its %s %q has", what, short.Name(value))
		}
		for _, a := range allowed {
			if r == a {
				return r, nil
			}
		}
		return 0, fmt.Errorf("its %s %q has %d dimensions, expected %v", what, short.Name(value), r, allowed)
	}
	var err error
	if _, err = rank("query", o.query, 3); err != nil {
		return err
	}
	if o.rank, err = rank("key", o.key, 3, 4); err != nil {
		return err
	}
	if _, err = rank("value", o.value, o.rank); err != nil {
		return err
	}
	if o.rank == 4 && (o.pastKey != "" || o.bias != "") {
		return errors.New("its key and value are those of all tokens already, and it has a past or a bias beside them")
	}
	if o.padding != "" {
		if o.maskRank, err = rank("key_padding_mask", o.padding, 2, 3); err != nil {
			return err
		}
	}
	if o.bias == "" {
		return nil
	}
	var known bool
	if o.width, known = c.Width(o.query); !known {
		return fmt.Errorf("the graph does not say how wide its query %q is", short.Name(o.query))
	}
	if o.valueWidth, known = c.Width(o.value); !known {
		return fmt.Errorf("the graph does not say how wide its value %q is", short.Name(o.value))
	}
	return nil
}

func expand(n *onnx.Node, c fused.Context) (*fused.Expansion, error) {
	o, err := read(n, c)
	if err != nil {
		return nil, err
	}
	b := fused.NewBuilder(n)
	q, k, v := o.biased(b)
	q = o.split(b, q, 3)
	k = o.store(b, o.presentKey, o.pastKey, o.split(b, k, o.rank))
	v = o.store(b, o.presentVal, o.pastValue, o.split(b, v, o.rank))
	scores := b.Add("MatMul", []string{q, b.Add("Transpose", []string{k}, onnx.IntsAttr("perm", 0, 1, 3, 2))})
	scores = b.Add("Mul", []string{scores, o.factor(b, q)})
	if o.scoreBias != "" {
		scores = b.Add("Add", []string{scores, o.scoreBias})
	}
	if o.padding != "" {
		scores = b.Add("Add", []string{scores, o.hidden(b)})
	}
	if o.causal {
		bias := b.Add("Where", []string{o.earlier(b, q, k), b.Float(0, o.element), b.Float(math.Inf(-1), o.element)})
		scores = b.Add("Add", []string{scores, bias})
	}
	p := b.Add("Softmax", []string{scores}, onnx.IntAttr("axis", -1))
	rows := b.Add("Transpose", []string{b.Add("MatMul", []string{p, v})}, onnx.IntsAttr("perm", 0, 2, 1, 3))
	b.AddTo(n.Outputs[0], "Reshape", []string{rows, b.Ints(0, 0, -1)})
	return b.Expansion(), nil
}

// biased adds the bias to query, key and value.
func (o *op) biased(b *fused.Builder) (q, k, v string) {
	if o.bias == "" {
		return o.query, o.key, o.value
	}
	parts := b.AddSeveral(3, "Split", []string{o.bias, b.Ints(o.width, o.width, o.valueWidth)}, onnx.IntAttr("axis", 0))
	add := func(x, bias string) string { return b.Add("Add", []string{x, bias}) }
	return add(o.query, parts[0]), add(o.key, parts[1]), add(o.value, parts[2])
}

// split brings [batch, length, heads · channels] into [batch, heads, length, channels].
func (o *op) split(b *fused.Builder, value string, rank int) string {
	if rank == 4 {
		return value
	}
	return b.Add("Transpose", []string{b.Add("Reshape", []string{value, b.Ints(0, 0, o.heads, -1)})}, onnx.IntsAttr("perm", 0, 2, 1, 3))
}

// store appends new keys or values to the past ones, and makes the output that
// gives all of them.
func (o *op) store(b *fused.Builder, present, past, fresh string) string {
	switch {
	case past != "":
		return b.AddTo(present, "Concat", []string{past, fresh}, onnx.IntAttr("axis", 2))
	case present != "":
		b.AddTo(present, "Identity", []string{fresh})
	}
	return fresh
}

// factor is what the product of query and key is multiplied by.
func (o *op) factor(b *fused.Builder, query string) string {
	if o.scale > 0 {
		return b.Float(o.scale, o.element)
	}
	element := o.element
	if element == onnx.Undefined {
		element = onnx.Float
	}
	size := b.Add("Cast", []string{b.Size(query, 3)}, onnx.IntAttr("to", int64(element)))
	return b.Add("Reciprocal", []string{b.Add("Sqrt", []string{size})})
}

// hidden is what is added to the scores where the padding mask is 0.
func (o *op) hidden(b *fused.Builder) string {
	axes := b.Ints(1)
	if o.maskRank == 2 {
		axes = b.Ints(1, 2)
	}
	mask := b.Add("Unsqueeze", []string{o.padding, axes})
	shown := b.Add("Cast", []string{mask}, onnx.IntAttr("to", int64(onnx.Bool)))
	return b.Add("Where", []string{shown, b.Float(0, o.element), b.Float(o.filter, o.element)})
}

// earlier says which keys are at or before a query: j ≤ past + i. The kernel
// shows the last query every key, also where there are more than queries.
func (o *op) earlier(b *fused.Builder, query, key string) string {
	past, one := b.Int(0), b.Int(1)
	if o.pastKey != "" {
		past = b.Size(o.pastKey, 2)
	}
	end := b.Add("Add", []string{past, b.Size(query, 2)})
	i := b.Add("Unsqueeze", []string{b.Add("Range", []string{past, end, one}), b.Ints(1)})
	j := b.Add("Range", []string{b.Int(0), b.Size(key, 2), one})
	before := b.Add("LessOrEqual", []string{j, i})
	if o.pastKey != "" {
		return before
	}
	return b.Add("Or", []string{before, b.Add("Equal", []string{b.Add("Add", []string{i, one}), end})})
}
