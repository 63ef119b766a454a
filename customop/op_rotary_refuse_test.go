package customop_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// refusedRotary demands one sentence that names the node and holds every wanted part.
func refusedRotary(t *testing.T, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one with %q", want)
	}
	for _, part := range append(want, "rotary 3") {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q is more than one line", err)
	}
}

// The values of a node that no input could make right are refused before there is one.
func TestRotaryCheck(t *testing.T) {
	good := turning("bshd", 1, 2, 1, 1, 8).op()
	for name, c := range map[string]struct {
		change func(*customop.Rotary)
		want   string
	}{
		"no frequencies":       {func(r *customop.Rotary) { r.Frequencies = nil }, "frequencies has no values"},
		"NaN":                  {func(r *customop.Rotary) { r.Frequencies = []float32{1, float32(math.NaN())} }, "frequencies[1] is NaN"},
		"no query":             {func(r *customop.Rotary) { r.Query = "" }, "query has no name"},
		"key, not rotated":     {func(r *customop.Rotary) { r.RotatedKey = "" }, "key and rotated_key"},
		"format":               {func(r *customop.Rotary) { r.TensorFormat = "bdsh" }, `"bdsh": it must be bshd or sbhd or bhsd or thd`},
		"interleaved 2":        {func(r *customop.Rotary) { r.Interleaved = 2 }, "interleaved is 2"},
		"inverse -1":           {func(r *customop.Rotary) { r.Inverse = -1 }, "inverse is -1"},
		"offset":               {func(r *customop.Rotary) { r.RotaryOffset = -1 }, "rotary_offset is -1"},
		"packed, no bounds":    {func(r *customop.Rotary) { r.TensorFormat = "thd" }, "needs cu_seqlens or position_ids"},
		"bounds, not packed":   {func(r *customop.Rotary) { r.CuSeqlens = "c" }, "cu_seqlens needs tensor_format"},
		"positions twice":      {func(r *customop.Rotary) { r.PositionIDs, r.SeqlenOffsets = "p", "o" }, "position_ids says all positions"},
		"axes, no positions":   {func(r *customop.Rotary) { r.PositionAxes = []int64{0, 0, 0, 1} }, "position_axes needs position_ids"},
		"number of axes":       {func(r *customop.Rotary) { r.PositionIDs, r.PositionAxes = "p", []int64{0} }, "position_axes has 1 values, frequencies 4"},
		"negative axis":        {func(r *customop.Rotary) { r.PositionIDs, r.PositionAxes = "p", []int64{0, 0, -2, 0} }, "position_axes[2] is -2"},
		"length without other": {func(r *customop.Rotary) { r.TrainedLength = 5 }, "trained_length is 5"},
	} {
		t.Run(name, func(t *testing.T) {
			r := good
			c.change(&r)
			if _, err := r.Node("rotary 3"); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "rotary 3") {
				t.Errorf("the error is %v, want one with %q", err, c.want)
			}
		})
	}
}

// A node that reads as what was written.
func TestRotaryNodeRoundTrip(t *testing.T) {
	for name, r := range rotations() {
		n, err := r.op().Node("n")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		back, err := customop.ParseRotary(n)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		again, err := back.Node("n")
		if err != nil || len(again.Attributes) != len(n.Attributes) || !slices.Equal(again.Inputs, n.Inputs) {
			t.Errorf("%s: %v is read as %v (%v)", name, n, again, err)
		}
		if version, _ := n.Attribute("spec_version"); version.Int != 7 {
			t.Errorf("%s: spec_version %d, want 7, which brought the op", name, version.Int)
		}
	}
}

// A node that a newer program wrote, or that says what cannot be, is refused when the session is
// created.
func TestRotarySessionRefuses(t *testing.T) {
	bare := func(names ...string) func(*onnx.Node) { return func(n *onnx.Node) { n.Inputs = names } }
	for name, c := range map[string]damage{
		"newer version":   {setting(onnx.IntAttr("spec_version", customop.SpecVersion+1)), []string{"Rotary node", fmt.Sprint("spec version ", customop.SpecVersion+1), fmt.Sprint("this library knows ", customop.SpecVersion), "update librope_ops"}},
		"no version":      {dropping("spec_version"), []string{"spec_version", "missing"}},
		"no frequencies":  {dropping("frequencies"), []string{"frequencies", "no values"}},
		"NaN":             {setting(onnx.FloatsAttr("frequencies", 1, float32(math.NaN()))), []string{"frequencies", "place 1", "finite"}},
		"format":          {setting(onnx.StringAttr("tensor_format", "hsd")), []string{"'hsd'", "'thd'"}},
		"type":            {setting(onnx.IntAttr("gain", 1)), []string{"gain", "type float"}},
		"interleaved":     {setting(onnx.IntAttr("interleaved", 3)), []string{"interleaved is 3"}},
		"offset":          {setting(onnx.IntAttr("rotary_offset", -1)), []string{"rotary_offset is -1"}},
		"packed":          {setting(onnx.StringAttr("tensor_format", "thd")), []string{"'thd' needs input cu_seqlens or position_ids"}},
		"bounds":          {bare("query", "key", "", "cu_seqlens"), []string{"cu_seqlens needs tensor_format 'thd'"}},
		"positions twice": {bare("query", "key", "position_ids", "", "seqlen_offsets"), []string{"position_ids says all positions"}},
		"axes":            {setting(onnx.IntsAttr("position_axes", 0, 0, 0, 0)), []string{"position_axes needs input position_ids"}},
		"number of axes":  {setting(onnx.IntsAttr("position_axes", 0)), []string{"position_axes has 1 values, frequencies has 4"}},
		"key alone":       {bare("query"), []string{"key and rotated_key must be given together"}},
		"lengths":         {setting(onnx.IntAttr("trained_length", 9)), []string{"trained_length is 9"}},
	} {
		t.Run(name, func(t *testing.T) {
			node := turning("bshd", 1, 2, 1, 1, 8).node(t)
			c.change(node)
			types := map[string]onnx.DataType{"query": onnx.Float, "key": onnx.Float, "position_ids": onnx.Int64, "cu_seqlens": onnx.Int32, "seqlen_offsets": onnx.Int32}
			_, err := newSession(t, node, types, 1)
			refusedRotary(t, err, c.want...)
		})
	}
}

// Tensors that do not fit each other are refused by a sentence with their shapes.
func TestRotaryRunRefuses(t *testing.T) {
	plain, packed := turning("bshd", 2, 6, 2, 1, 8), turning("thd", 1, 6, 2, 1, 8)
	with := func(r rotation, change func(*rotation)) rotation { change(&r); return r }
	ids := with(plain, func(r *rotation) { r.PositionIDs = make([]int64, 12) })
	axes := with(ids, func(r *rotation) { r.Encoding.Axes, r.PositionIDs = []int{0, 1, 2, 0}, make([]int64, 36) })
	offsets := with(plain, func(r *rotation) { r.SeqlenOffsets = []int32{0, 1} })
	zeros := func(n int) []float32 { return make([]float32, n) }
	for name, c := range map[string]struct {
		rotation rotation
		change   func(feeds)
		want     []string
	}{
		"rank":            {plain, func(f feeds) { f["query"] = floats(zeros(96), 12, 8) }, []string{"query [12, 8]", "4 dimensions"}},
		"packed rank":     {packed, func(f feeds) { f["query"] = floats(zeros(96), 1, 6, 2, 8) }, []string{"query [1, 6, 2, 8]", "3 dimensions"}},
		"head size":       {plain, func(f feeds) { f["query"] = floats(zeros(48), 2, 6, 2, 2) }, []string{"4 frequencies from channel 0", "head size 2"}},
		"key length":      {plain, func(f feeds) { f["key"] = floats(zeros(80), 2, 5, 1, 8) }, []string{"key [2, 5, 1, 8]", "[2, 6, 1, 8]", "query [2, 6, 2, 8]"}},
		"positions":       {ids, func(f feeds) { f["position_ids"] = integers(make([]int64, 15), 3, 5) }, []string{"position_ids [3, 5]", "[2, 6]"}},
		"far position":    {ids, func(f feeds) { f["position_ids"].integers[7] = 1 << 31 }, []string{"2147483648 at place 7", "2147483647"}},
		"far, negative":   {ids, func(f feeds) { f["position_ids"].integers[0] = math.MinInt64 }, []string{"-9223372036854775808 at place 0"}},
		"axes":            {axes, func(f feeds) { f["position_ids"] = integers(make([]int64, 24), 2, 2, 6) }, []string{"position_ids [2, 2, 6]", "[3, 2, 6]", "position_axes"}},
		"offsets":         {offsets, func(f feeds) { f["seqlen_offsets"] = integers32([]int64{0, 1, 2}, 3) }, []string{"seqlen_offsets [3]", "[2] or [1]"}},
		"negative offset": {offsets, func(f feeds) { f["seqlen_offsets"].integers[1] = -4 }, []string{"seqlen_offsets [2]", "-4 at place 1"}},
		"far offset":      {offsets, func(f feeds) { f["seqlen_offsets"].integers[0] = math.MaxInt32 }, []string{"2147483647 at place 0"}},
		"bounds descend":  {packed, func(f feeds) { f["cu_seqlens"].integers[1] = 4 }, []string{"cu_seqlens [4]", "2 at place 2", "after 4", "must not descend"}},
		"bounds begin":    {packed, func(f feeds) { f["cu_seqlens"].integers[0] = 1 }, []string{"cu_seqlens [4]", "begin with 0"}},
		"bounds end":      {packed, func(f feeds) { f["cu_seqlens"].integers[3] = 7 }, []string{"cu_seqlens [4] ends with 7", "6 tokens"}},
		"no bounds":       {packed, func(f feeds) { f["cu_seqlens"] = integers32(nil, 0) }, []string{"cu_seqlens [0]", "sequences + 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := c.rotation.feeds(c.rotation.numbers(1))
			s, err := newSession(t, c.rotation.node(t), typesOf(in), 1)
			if err != nil {
				t.Fatal(err)
			}
			c.change(in)
			_, err = s.run(in)
			refusedRotary(t, err, c.want...)
		})
	}
}

// Input and output bound to one buffer, and a session that may reuse its own.
func TestRotaryInPlace(t *testing.T) {
	for name, r := range rotations() {
		x := r.numbers(3)
		in := r.feeds(x)
		s, err := newSession(t, r.node(t), typesOf(in), 2)
		if err != nil {
			t.Fatal(err)
		}
		want, err := s.run(in)
		if err != nil {
			t.Fatal(err)
		}
		inputs, outputs := []ort.Value{}, []ort.Value{}
		bind := func(list *[]ort.Value, x tensor) {
			v, err := x.value()
			if err != nil {
				t.Fatal(err)
			}
			defer t.Cleanup(func() { v.Destroy() })
			*list = append(*list, v)
		}
		for _, name := range s.inputs {
			bind(&inputs, in[name])
		}
		bind(&outputs, in["query"])
		if r.key != nil {
			bind(&outputs, in["key"])
		}
		if err := s.session.Run(inputs, outputs); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := map[string]tensor{"rotated_query": in["query"]}
		if r.key != nil {
			got["rotated_key"] = in["key"]
		}
		same(t, want, got)

		around := []*onnx.Node{onnx.NewNode("Neg", []string{"query"}, []string{"minus"}), r.node(t), onnx.NewNode("Neg", []string{"turned"}, []string{"rotated_query"})}
		around[1].Inputs[0], around[1].Outputs[0] = "minus", "turned"
		in = r.feeds(x)
		if s, err = sessionOf(t, around, typesOf(in), 2); err != nil {
			t.Fatal(err)
		}
		if got, err = s.run(in); err != nil {
			t.Fatal(err)
		}
		same(t, want, got)
	}
}

// Memory that overlaps otherwise is refused.
func TestRotaryOverlap(t *testing.T) {
	hostOnly(t, copied)
	r := turning("bshd", 1, 4, 1, 0, 8)
	s, err := newSession(t, r.node(t), typesOf(r.feeds(r.numbers(1))), 1)
	if err != nil {
		t.Fatal(err)
	}
	memory := make([]float32, 40)
	value := func(x []float32) ort.Value {
		v, err := floats(x, 1, 4, 1, 8).value()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	from, to := value(memory[:32]), value(memory[8:])
	defer from.Destroy()
	defer to.Destroy()
	refusedRotary(t, s.session.Run([]ort.Value{from}, []ort.Value{to}), "rotated_query overlaps input query")
}

// A library that knows an older specification does not have the op: who asks for the specification
// that the node says is told so, and what to do.
func TestOlderLibraryRefusesRotary(t *testing.T) {
	library := testruntime.Require(t)
	content, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(t.TempDir(), filepath.Base(library))
	spoiled := strings.Replace(string(content), fmt.Sprintf(" spec=%d\x00", customop.SpecVersion), " spec=6\x00", 1)
	if err := os.WriteFile(old, []byte(spoiled), 0o644); err != nil {
		t.Fatal(err)
	}
	version, _ := turningNode(t).Attribute("spec_version")
	options, err := ort.NewSessionOptions()
	if err != nil {
		t.Fatal(err)
	}
	defer options.Destroy()
	err = customop.Require(options, customop.Options{Library: old}, int(version.Int))
	if err == nil || !strings.Contains(err.Error(), "knows specifications up to 6, but the model needs 7") {
		t.Errorf("the error is %v", err)
	}
}

func turningNode(t *testing.T) customop.Node {
	n, err := turning("bshd", 1, 2, 1, 1, 8).op().Node("n")
	if err != nil {
		t.Fatal(err)
	}
	return n
}
