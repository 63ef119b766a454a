package groupquery

import (
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// op is what a GroupQueryAttention node says.
type op struct {
	query, key, value      string // key and value are "" where query holds all three
	pastKey, pastValue     string
	lengths, total         string // seqlens_k, total_sequence_length
	cos, sin               string // tables; "" without rotation
	output                 string
	presentKey, presentVal string

	heads, kvHeads int64
	headSize       int64
	rotaryDim      int64
	interleaved    bool
	scale          float32
	softcap        float32
	window         int64 // keys a query sees, its own included; 0 without window
}

// inputs of the op by place; those after sinTable are refused.
const (
	query = iota
	key
	value
	pastKey
	pastValue
	lengths
	total
	cosTable
	sinTable
)

var laterInputs = []string{"position_ids", "attention_bias", "head_sink", "k_scale", "v_scale", "q_norm_weight", "k_norm_weight"}

// maxHeads bounds num_heads: more kill ONNX Runtime.
const maxHeads = 1 << 12

// read checks a node. ONNX Runtime ends its own process on attributes and
// tables that make no sense, so everything is looked at before it is evaluated.
// table gives the shape of a constant, nil for other values; width is the last
// dimension of the query.
func read(n *onnx.Node, table func(string) []int64, width int64) (op, error) {
	in := func(i int) string {
		if i < len(n.Inputs) {
			return n.Inputs[i]
		}
		return ""
	}
	out := func(i int) string {
		if i < len(n.Outputs) {
			return n.Outputs[i]
		}
		return ""
	}
	o := op{
		query: in(query), key: in(key), value: in(value), pastKey: in(pastKey), pastValue: in(pastValue),
		lengths: in(lengths), total: in(total),
		output: out(0), presentKey: out(1), presentVal: out(2),
		heads: n.Int("num_heads", 0), kvHeads: n.Int("kv_num_heads", 0),
		interleaved: n.Int("rotary_interleaved", 0) == 1,
		scale:       n.Float("scale", 0), softcap: n.Float("softcap", 0),
	}
	if w := n.Int("local_window_size", -1); w > 0 {
		o.window = w
	}
	for _, check := range []error{
		o.checkAttributes(n), o.checkValues(n, in, out), o.checkWidth(width),
	} {
		if check != nil {
			return op{}, check
		}
	}
	if o.scale == 0 {
		o.scale = float32(1 / math.Sqrt(float64(o.headSize)))
	}
	if n.Int("do_rotary", 0) == 0 {
		return o, nil
	}
	o.cos, o.sin = in(cosTable), in(sinTable)
	return o, o.checkTables(table)
}

func (o *op) checkAttributes(n *onnx.Node) error {
	known := []string{"num_heads", "kv_num_heads", "do_rotary", "rotary_interleaved", "scale", "softcap", "local_window_size"}
	harmless := map[string]int64{"smooth_softmax": 0, "qk_output": 0, "sliding_window_cache": 0, "causal": 1, "kv_cache_bit_width": 0}
	for _, a := range n.Attributes {
		want, listed := harmless[a.Name]
		switch {
		case slices.Contains(known, a.Name), a.Name == "qk_norm_epsilon":
		case listed && (n.Int(a.Name, want) == want || a.Name == "smooth_softmax" && n.Int(a.Name, 0) < 0):
		case (a.Name == "k_quant_type" || a.Name == "v_quant_type") && n.Text(a.Name, "NONE") == "NONE":
		default:
			return fmt.Errorf("its attribute %q is none that is understood", a.Name)
		}
	}
	for _, h := range []struct {
		name  string
		count int64
	}{{"num_heads", o.heads}, {"kv_num_heads", o.kvHeads}} {
		if h.count < 1 || h.count > maxHeads {
			return fmt.Errorf("its %s is %d; a number from 1 to %d was expected", h.name, h.count, maxHeads)
		}
	}
	switch {
	case o.heads%o.kvHeads != 0:
		return fmt.Errorf("its %d query heads are not a multiple of its %d key heads", o.heads, o.kvHeads)
	case !(o.scale >= 0) || math.IsInf(float64(o.scale), 0):
		return fmt.Errorf("its scale is %g; a positive number was expected", o.scale)
	case !(o.softcap >= 0) || math.IsInf(float64(o.softcap), 0):
		return fmt.Errorf("its softcap is %g; a number from 0 was expected", o.softcap)
	case o.window > math.MaxInt32:
		return fmt.Errorf("its local_window_size is %d; at most %d was expected", o.window, math.MaxInt32)
	}
	return nil
}

func (o *op) checkValues(n *onnx.Node, in, out func(int) string) error {
	for i, name := range laterInputs {
		if in(sinTable+1+i) != "" {
			return fmt.Errorf("its input %s is not understood by this version", name)
		}
	}
	switch {
	case len(n.Inputs) > sinTable+1+len(laterInputs):
		return fmt.Errorf("it has %d inputs; at most %d were expected", len(n.Inputs), sinTable+1+len(laterInputs))
	case out(3) != "":
		return fmt.Errorf("it gives the scores as an output of their own (output_qk), which no fused op of this project does")
	case o.query == "" || o.lengths == "" || o.total == "" || o.output == "":
		return fmt.Errorf("it lacks query, seqlens_k, total_sequence_length or output")
	case (o.key == "") != (o.value == ""):
		return fmt.Errorf("it has only one of key and value; both or neither were expected")
	case o.pastKey == "" || o.pastValue == "" || o.presentKey == "" || o.presentVal == "":
		return fmt.Errorf("it has no key-value cache (past and present key and value), which this version needs")
	}
	return nil
}

// checkWidth finds the head size from the query's width.
func (o *op) checkWidth(width int64) error {
	heads := o.heads
	if o.key == "" {
		heads += 2 * o.kvHeads
	}
	if width < heads || width%heads != 0 {
		return fmt.Errorf("its query is %d wide; a multiple of its %d heads was expected", width, heads)
	}
	o.headSize = width / heads
	return nil
}

func (o *op) checkTables(table func(string) []int64) error {
	if o.cos == "" || o.sin == "" {
		return fmt.Errorf("it rotates without cos_cache and sin_cache")
	}
	for _, name := range []string{o.cos, o.sin} {
		dims := table(name)
		switch {
		case dims == nil:
			return fmt.Errorf("its table %q is no constant", name)
		case len(dims) != 2 || dims[0] < 1 || dims[1] < 1 || 2*dims[1] > o.headSize:
			return fmt.Errorf("its table %q has the shape %v; [positions, at most half of the head size %d] was expected", name, dims, o.headSize)
		case o.rotaryDim != 0 && o.rotaryDim != 2*dims[1]:
			return fmt.Errorf("cos_cache and sin_cache are %d and %d wide; one width was expected", o.rotaryDim/2, dims[1])
		}
		o.rotaryDim = 2 * dims[1]
	}
	return nil
}
