package groupquery

import (
	"errors"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
)

// op is a node read and checked.
type op struct {
	query, key, value        string // key and value are "" where query holds all three
	pastKey, pastValue       string
	lengths, total           string // seqlens_k, total_sequence_length
	cos, sin                 string // tables; "" without rotation
	sink                     string // head_sink, a logit per head; "" without
	zeroSink                 bool   // smooth_softmax: logits of 0
	output                   string
	presentKey, presentValue string

	elem           onnx.DataType // of the hidden states; Undefined where the graph does not tell it
	heads, kvHeads int64
	headSize       int64
	rotaryDim      int64
	tableRows      int64 // of the tables, beyond which the node does not run; 0 without tables
	interleaved    bool
	scale, softcap float64
	window         int64 // keys that a query sees, its own included; 0 is all
}

// inputs says of each input, by place, why a node that has it is refused; "" is expanded.
var inputs = []string{
	"", "", "", // query, key, value
	"", "", // past_key, past_value
	"", "", // seqlens_k, total_sequence_length
	"", "", // cos_cache, sin_cache
	"the node has its own input position_ids, of which a first call uses one and a later call all; expected positions that follow from seqlens_k",
	"the node adds its own attention_bias to the scores, whose columns are those of a buffer; expected masks that follow from seqlens_k",
	"",                   // head_sink
	quantised, quantised, // k_scale, v_scale
	normalised, normalised, // q_norm_weight, k_norm_weight
	"the node takes chunks that are padded on the right (query_seqlens); expected chunks of tokens alone",
}

const (
	quantised  = "its cache holds rounded numbers and their scales (k_scale, v_scale); expected floats; take the file that it was made of, or export it without a quantised cache"
	normalised = "the node normalises query and key inside itself (q_norm_weight, k_norm_weight), which ONNX Runtime does not run on the CPU, so it cannot be verified; have the norm exported in front of it (fuse_qk_norm_gqa=false)"
)

const sinkInput = 11

// read checks a node. ONNX Runtime ends its own process on attributes and
// tables that make no sense, so all that it would trip over is looked at here.
func read(n *onnx.Node, c fused.Context) (*op, error) {
	o := &op{}
	if err := o.attributes(n); err != nil {
		return nil, err
	}
	if err := fused.Arity(n, 1, len(inputs), 4); err != nil {
		return nil, err
	}
	o.sink = fused.Input(n, sinkInput)
	for i, reason := range inputs {
		if reason != "" && fused.Input(n, i) != "" {
			return nil, errors.New(reason)
		}
	}
	into := []*string{&o.query, &o.key, &o.value, &o.pastKey, &o.pastValue, &o.lengths, &o.total, &o.cos, &o.sin}
	for i, v := range into {
		*v = fused.Input(n, i)
	}
	o.output, o.presentKey, o.presentValue = fused.Output(n, 0), fused.Output(n, 1), fused.Output(n, 2)
	switch {
	case fused.Output(n, 3) != "":
		return nil, errors.New("the node outputs its scores (output_qk)")
	case o.lengths == "" || o.total == "":
		return nil, errors.New("the node lacks seqlens_k or total_sequence_length")
	case (o.key == "") != (o.value == ""):
		return nil, errors.New("the node has only one of key and value; expected both or neither")
	case o.pastKey == "" || o.pastValue == "" || o.presentKey == "" || o.presentValue == "":
		return nil, errors.New("the node works without a key-value cache, which this version does not support")
	}
	if t := c.Constant(o.key); t != nil && t.Len() == 0 {
		return nil, errors.New("its key and value are empty: it only reads the cache of another layer, to which it adds nothing; expected keys and values of its own")
	}
	if o.sink != "" {
		if t := c.Constant(o.sink); t != nil && (len(t.Dims) != 1 || t.Dims[0] != o.heads) {
			return nil, fmt.Errorf("its head_sink %q has the shape %v, expected [%d]", short.Name(o.sink), t.Dims, o.heads)
		}
	}
	o.elem = c.Type(o.query)
	if err := o.width(c); err != nil {
		return nil, err
	}
	for _, name := range []string{o.cos, o.sin} { // also looked at where they are not used
		if name == "" {
			continue
		}
		if t := c.Constant(name); t != nil && len(t.Dims) > 0 && (o.tableRows == 0 || t.Dims[0] < o.tableRows) {
			o.tableRows = t.Dims[0]
		}
	}
	rotates, err := fused.Int(n, "do_rotary", 0, 0, 1)
	if err != nil {
		return nil, err
	}
	if rotates == 0 {
		o.cos, o.sin = "", ""
		return o, nil
	}
	o.rotaryDim, err = fused.Tables(c, o.cos, o.sin, o.headSize)
	return o, err
}

func (o *op) attributes(n *onnx.Node) error {
	if err := fused.Known(n, "num_heads", "kv_num_heads", "do_rotary", "rotary_interleaved", "scale", "softcap", "local_window_size",
		"smooth_softmax", "qk_output", "sliding_window_cache", "causal", "kv_cache_bit_width", "k_quant_type", "v_quant_type",
		"qk_norm_epsilon", "q_norm_epsilon", "k_norm_epsilon"); err != nil { // the last three mean nothing without the norms' weights
		return err
	}
	var interleaved, window, smooth, windowCache, causal, bits, unused int64
	for _, a := range []struct {
		into           *int64
		name           string
		def, low, high int64
	}{
		{&o.heads, "num_heads", 0, 1, fused.MaxHeads},
		{&o.kvHeads, "kv_num_heads", 0, 1, fused.MaxHeads},
		{&interleaved, "rotary_interleaved", 0, 0, 1},
		{&window, "local_window_size", -1, -1, math.MaxInt32},
		{&smooth, "smooth_softmax", 0, -1, 1},
		{&windowCache, "sliding_window_cache", 0, 0, 1},
		{&causal, "causal", 1, 0, 1},
		{&bits, "kv_cache_bit_width", 0, 0, 8},
		{&unused, "qk_output", 0, 0, 0}, // only the value that changes nothing is expanded
	} {
		var err error
		if *a.into, err = fused.Int(n, a.name, a.def, a.low, a.high); err != nil {
			return err
		}
	}
	o.interleaved, o.window, o.zeroSink = interleaved == 1, max(window, 0), smooth == 1
	if o.heads == 0 || o.kvHeads == 0 || o.heads%o.kvHeads != 0 {
		return fmt.Errorf("its num_heads %d is not a multiple of its kv_num_heads %d", o.heads, o.kvHeads)
	}
	switch {
	case windowCache == 1:
		return errors.New("its cache holds only the last keys of each row and drops others by itself (sliding_window_cache), so a key's place is not its index; expected a cache of all tokens; export it with one (windowed_kv_cache=false)")
	case causal == 0:
		return errors.New("each query sees all keys (causal=0), including those of padding on the right up to total_sequence_length; expected causal attention")
	case bits != 0, n.Text("k_quant_type", "NONE") != "NONE", n.Text("v_quant_type", "NONE") != "NONE":
		return errors.New(quantised)
	}
	var err error
	if o.scale, err = fused.Float(n, "scale", 0); err != nil {
		return err
	}
	if o.softcap, err = fused.Float(n, "softcap", 0); err != nil {
		return err
	}
	if o.scale < 0 || o.softcap < 0 {
		return fmt.Errorf("its scale is %g and its softcap %g; neither may be negative", o.scale, o.softcap)
	}
	return nil
}

// maxHeadSize bounds what the cache may say of the head size.
const maxHeadSize = 1 << 16

// width finds the head size from the query's width, or from the cache.
func (o *op) width(c fused.Context) error {
	heads := o.heads
	if o.key == "" {
		heads += 2 * o.kvHeads
	}
	width, ok := c.Width(o.query)
	cached, known := c.Width(o.pastKey)
	known = known && cached > 0 && cached <= maxHeadSize
	if !ok && known {
		width, ok = cached*heads, true
	}
	switch {
	case !ok:
		return fmt.Errorf("the graph does not say how wide its query %q is", short.Name(o.query))
	case o.key == "" && known && width == cached*o.heads:
		return errors.New("the node has neither key nor value: it only reads the cache of another layer, which ONNX Runtime does not run on the CPU, so it cannot be verified; expected keys and values of its own")
	case width < heads || width%heads != 0:
		return fmt.Errorf("its query %q is %d wide, which is not a multiple of %d heads", short.Name(o.query), width, heads)
	}
	o.headSize = width / heads
	if o.scale == 0 {
		o.scale = float64(float32(1 / math.Sqrt(float64(o.headSize))))
	}
	return nil
}
