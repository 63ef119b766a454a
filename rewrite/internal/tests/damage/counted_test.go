package damage_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

const genai = "llama__genai-fp32"

// counting is a GenAI export to be changed.
type counting struct {
	*testing.T
	*onnx.Model
	nodes []*onnx.Node // GroupQueryAttention of each layer
}

func (c counting) attribute(a *onnx.Attribute) {
	for _, n := range c.nodes {
		n.SetAttribute(a)
	}
}

// table replaces cos_cache (7) or sin_cache (8) of the given layers.
func (c counting) table(input int, name string, change func(row, pair int, v float32) float32, layers ...int) {
	old := c.Graph.Initializer(c.nodes[0].Inputs[input])
	v, err := old.Floats()
	if err != nil {
		c.Fatal(err)
	}
	raw := []byte{}
	for i, x := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(change(i/int(old.Dims[1]), i%int(old.Dims[1]), x)))
	}
	c.Graph.AddInitializer(onnx.NewTensor(name, onnx.Float, old.Dims, raw))
	for _, l := range layers {
		c.nodes[l].Inputs[input] = name
	}
}

// input gives layer 0 a constant input that GroupQueryAttention may have.
func (c counting) input(place int, t *onnx.Tensor) {
	c.Graph.AddInitializer(t)
	for len(c.nodes[0].Inputs) <= place {
		c.nodes[0].Inputs = append(c.nodes[0].Inputs, "")
	}
	c.nodes[0].Inputs[place] = t.Name
}

// slice cuts a value before a node, and declares how wide the part is.
func (c counting) slice(before *onnx.Node, value, name string, from, to, axes []int64, width int64) string {
	inputs := []string{value}
	for _, list := range [][]int64{from, to, axes} {
		t := ir.Int64Tensor(fmt.Sprintf("%s/%d", name, len(inputs)), []int64{int64(len(list))}, list...)
		c.Graph.AddInitializer(t)
		inputs = append(inputs, t.Name)
	}
	c.Graph.InsertNode(before, onnx.NewNode("Slice", inputs, []string{name}))
	c.Graph.ValueInfo = append(c.Graph.ValueInfo, onnx.NewValueInfo(name, onnx.Float, onnx.Dim{Param: "batch_size"}, onnx.Dim{Param: name}, onnx.Dim{Value: width}))
	return name
}

// queryAlone gives a node the query out of the one input that holds query, key and value.
func (c counting) queryAlone(n *onnx.Node) {
	n.Inputs[0] = c.slice(n, n.Inputs[0], "query", []int64{0}, []int64{64}, []int64{2}, 64)
}

// rotateBefore takes query, key and value apart before a node, and the rotation
// out of it into com.microsoft RotaryEmbedding nodes, which read position_ids.
func (c counting) rotateBefore(n *onnx.Node) {
	part := func(s string) string { return n.Outputs[0] + s }
	c.Graph.AddInitializer(ir.Int64Tensor(part("/sizes"), []int64{3}, 64, 32, 32))
	c.Graph.InsertNode(n, onnx.NewNode("Split", []string{n.Inputs[0], part("/sizes")}, []string{part("/q"), part("/k"), part("/v")}, onnx.IntAttr("axis", -1)))
	for _, x := range []string{"/q", "/k"} {
		r := onnx.NewNode("RotaryEmbedding", []string{part(x), "position_ids", n.Inputs[7], n.Inputs[8]}, []string{part(x + "/turned")})
		r.Domain = "com.microsoft"
		c.Graph.InsertNode(n, r)
	}
	n.Inputs = append([]string{part("/q/turned"), part("/k/turned"), part("/v")}, n.Inputs[3:7]...)
	n.SetAttribute(onnx.IntAttr("do_rotary", 0))
}

// TestLookalikesCounted: GroupQueryAttention that is changed is either proven,
// and then computes what the changed one does, or kept with a reason.
func TestLookalikesCounted(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	both := func(reason string) []string { return []string{reason, reason} }
	for _, x := range testsample.Of(t, []struct {
		name   string
		change func(c counting)
		kept   []string // per layer what the reason says; "" is rewritten
		is     func(a rope.Attention) bool
		deadly bool // ONNX Runtime does not run the original
	}{
		{"neighbours", func(c counting) { c.attribute(onnx.IntAttr("rotary_interleaved", 1)) }, both(""),
			func(a rope.Attention) bool { return a.Encoding.Layout == rope.Interleaved }, false},
		{"a window", func(c counting) { c.attribute(onnx.IntAttr("local_window_size", 5)) }, both(""),
			func(a rope.Attention) bool { return a.Mask.Window == 5 }, false},
		{"a window of one", func(c counting) { c.attribute(onnx.IntAttr("local_window_size", 1)) }, both("no query sees two keys"), nil, false},
		{"another scale", func(c counting) { c.attribute(onnx.FloatAttr("scale", 0.3)) }, both(""),
			func(a rope.Attention) bool { return math.Abs(a.Scale-0.3) < 1e-7 }, false},
		{"no scale", func(c counting) { c.attribute(onnx.FloatAttr("scale", 0)) }, both(""),
			func(a rope.Attention) bool { return a.Scale == 0.25 }, false},
		{"a layer without rotation", func(c counting) { c.nodes[0].SetAttribute(onnx.IntAttr("do_rotary", 0)) }, both(""), nil, false},
		{"a gain", func(c counting) {
			for _, place := range []int{7, 8} {
				c.table(place, []string{"cosines", "sines"}[place-7], func(_, _ int, v float32) float32 { return 1.25 * v }, 0, 1)
			}
		}, both(""), func(a rope.Attention) bool { return math.Abs(a.Encoding.Gain-1.25) < 1e-6 }, false},
		{"a rotation before it", func(c counting) {
			for _, n := range c.nodes {
				c.rotateBefore(n)
			}
			c.Graph.AddInput(onnx.NewValueInfo("position_ids", onnx.Int64, onnx.Dim{Param: "batch_size"}, onnx.Dim{Param: "sequence_length"}))
		}, both(""), func(a rope.Attention) bool { return len(a.Encoding.Frequencies) == 8 }, false},
		{"a softcap", func(c counting) { c.attribute(onnx.FloatAttr("softcap", 2)) }, both(""), func(a rope.Attention) bool { return a.Softcap == 2 }, false},
		{"one wrong entry", func(c counting) {
			c.table(7, "cosines", func(row, pair int, v float32) float32 {
				if row == 37 && pair == 3 {
					return v + 1e-3
				}
				return v
			}, 0)
		}, []string{"at position 37", ""}, nil, false},
		{"a wrong last row", func(c counting) {
			c.table(8, "sines", func(row, _ int, v float32) float32 {
				if row == 63 {
					return -v
				}
				return v
			}, 1)
		}, []string{"", "at position 63"}, nil, false},
		{"no rotation", func(c counting) {
			c.table(8, "sines", func(_, _ int, v float32) float32 { return 1.1 * v }, 0, 1)
		}, both("rotat"), nil, false},
		{"random tables", func(c counting) {
			c.table(7, "cosines", func(row, pair int, _ float32) float32 { return float32(math.Sin(float64(row*row*7 + pair*3))) }, 0, 1)
		}, both("rotat"), nil, false},
		{"sine for cosine", func(c counting) {
			c.nodes[0].Inputs[7], c.nodes[0].Inputs[8] = c.nodes[0].Inputs[8], c.nodes[0].Inputs[7]
		}, []string{"", ""}, nil, false}, // halves change places, and one turns its sign
		{"negative heads", func(c counting) { c.nodes[0].SetAttribute(onnx.IntAttr("num_heads", -4)) }, []string{"num_heads is -4", "num_heads is -4"}, nil, false},
		{"heads beyond all bounds", func(c counting) { c.nodes[1].SetAttribute(onnx.IntAttr("kv_num_heads", 1<<40)) }, []string{"", "kv_num_heads is 1099511627776"}, nil, true},
		{"other heads", func(c counting) {
			c.nodes[1].SetAttribute(onnx.IntAttr("num_heads", 3))
			c.nodes[1].SetAttribute(onnx.IntAttr("kv_num_heads", 3))
		}, []string{"", "not a multiple of 9 heads"}, nil, true},
		{"a table of one dimension", func(c counting) {
			c.Graph.AddInitializer(onnx.NewTensor("flat", onnx.Float, []int64{64}, make([]byte, 256)))
			c.nodes[1].Inputs[7] = "flat"
		}, []string{"", "has the shape [64]"}, nil, true},
		{"a table that is computed", func(c counting) {
			c.Graph.InsertNode(c.nodes[1], onnx.NewNode("Cos", []string{c.nodes[1].Inputs[7]}, []string{"computed"}))
			c.nodes[1].Inputs[7] = "computed"
		}, []string{"", "not rotated by position"}, nil, false},
		{"rotation without tables", func(c counting) { c.nodes[1].Inputs[7], c.nodes[1].Inputs[8] = "", "" }, []string{"", "without cos_cache"}, nil, true},
		{"positions", func(c counting) {
			c.input(9, onnx.NewTensor("places", onnx.Int64, []int64{1, 1}, make([]byte, 8)))
		}, both("position_ids"), nil, false},
		{"a bias", func(c counting) {
			c.input(10, onnx.NewTensor("bias", onnx.Float, []int64{1, 1, 1, 1}, make([]byte, 4)))
		}, both("attention_bias"), nil, false},
		{"sinks", func(c counting) {
			c.input(11, ir.Float32Tensor("sinks", []int64{4}, 0.5, -1, 2, 0))
		}, both(""), func(a rope.Attention) bool {
			return a.Sinks == nil || len(a.Sinks) == 4 && math.Abs(a.Sinks[0]-0.5) < 1e-6 && math.Abs(a.Sinks[1]+1) < 1e-6 && math.Abs(a.Sinks[2]-2) < 1e-6
		}, false},
		{"a smooth softmax", func(c counting) { c.attribute(onnx.IntAttr("smooth_softmax", 1)) }, both(""), func(a rope.Attention) bool {
			return len(a.Sinks) == 4 && math.Abs(a.Sinks[3]) < 1e-6
		}, false},
		{"too many sinks", func(c counting) {
			c.input(11, ir.Float32Tensor("sinks", []int64{5}, 0.5, -1, 2, 0, 0))
		}, both("expected [4]"), nil, true},
		{"bidirectional", func(c counting) { c.nodes[1].SetAttribute(onnx.IntAttr("causal", 0)) }, []string{"", "causal=0"}, nil, false},
		{"a cache of the window alone", func(c counting) {
			c.nodes[1].SetAttribute(onnx.IntAttr("local_window_size", 5))
			c.nodes[1].SetAttribute(onnx.IntAttr("sliding_window_cache", 1))
		}, []string{"", "sliding_window_cache"}, nil, true},
		{"neither key nor value", func(c counting) { // with a query that is wide enough for all three of fewer channels
			c.queryAlone(c.nodes[1])
			for _, v := range c.Graph.Inputs {
				if v.Name == c.nodes[1].Inputs[3] {
					v.Shape[3] = onnx.Dim{Value: 16}
				}
			}
		}, []string{"", "the node has neither key nor value"}, nil, true},
		{"the cache of another layer", func(c counting) { // whose nodes have a key and a value without rows
			a, b := c.nodes[0], c.nodes[1]
			none := c.slice(b, b.Inputs[0], "none", []int64{0, 64}, []int64{0, 96}, []int64{1, 2}, 32)
			c.queryAlone(b)
			b.Inputs[1], b.Inputs[2], b.Inputs[3], b.Inputs[4] = none, none, a.Outputs[1], a.Outputs[2]
		}, both("shares the cache"), nil, true},
		{"an unknown attribute", func(c counting) { c.nodes[1].SetAttribute(onnx.IntAttr("surprise", 0)) }, []string{"", "attribute surprise"}, nil, true},
	}, 8) {
		t.Run(x.name, func(t *testing.T) {
			m := kit.OpenModel(t, "../../../../testdata/models/"+genai+"/model.onnx")
			c := counting{T: t, Model: m}
			for _, n := range m.Graph.Nodes {
				if n.OpType == "GroupQueryAttention" {
					c.nodes = append(c.nodes, n)
				}
			}
			x.change(c)
			changed := filepath.Join(t.TempDir(), "changed.onnx")
			if err := m.Save(changed, onnx.SaveOptions{}); err != nil {
				t.Fatal(err)
			}
			m = kit.OpenModel(t, changed)
			report, err := kit.Rewrite(context.Background(), m, rewrite.Options{AllowUnchanged: true})
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range report.Sites {
				switch want := x.kept[i]; {
				case want == "":
					if s.Status != rewrite.Rewritten {
						t.Errorf("layer %d is unchanged: %s", i, s.Reason)
					} else if x.is != nil && !x.is(*s.Attention) {
						t.Errorf("layer %d is measured as %+v", i, *s.Attention)
					}
				default:
					if s.Status == rewrite.Rewritten || !strings.Contains(s.Reason, want) {
						t.Errorf("layer %d is %s: %s; kept for %q was expected", i, s.Status, s.Reason, want)
					} else {
						t.Logf("layer %d: %s", i, s.Reason)
					}
				}
			}
			if report.Rewritten() == 0 || x.deadly {
				return // nothing to compare, or an original that ONNX Runtime does not survive
			}
			kit.SamePatched(t, changed, m, 48)
		})
	}
}

// TestProofRefusesDamageCounted spoils what was measured of GroupQueryAttention.
func TestProofRefusesDamageCounted(t *testing.T) {
	t.Parallel()
	m := measureSite(t, genai, 0, nil)
	if err := m.prove(m.measured.Attention, nil); err != nil {
		t.Fatalf("the undamaged site is refused: %v", err)
	}
	for what, damage := range map[string]func(*rope.Attention){
		"first frequency by 1e-3": func(a *rope.Attention) { a.Encoding.Frequencies[0] *= 1.001 },
		"last frequency by 1e-2":  func(a *rope.Attention) { a.Encoding.Frequencies[7] *= 1.01 },
		"scale by 1 %":            func(a *rope.Attention) { a.Scale *= 1.01 },
		"gain by 0.1 %":           func(a *rope.Attention) { a.Encoding.Gain = 1.001 },
		"layout":                  func(a *rope.Attention) { a.Encoding.Layout = rope.Interleaved },
		"a window of 50":          func(a *rope.Attention) { a.Mask.Window = 50 },
		"not causal":              func(a *rope.Attention) { a.Mask.Causal = false },
	} {
		t.Run(what, func(t *testing.T) {
			a := m.measured.Attention.Clone()
			damage(&a)
			refused(t, m.prove(a, nil))
		})
	}
	for what, damage := range map[string]func(*lower.Binding){
		"the query one head on":   func(w *lower.Binding) { w.QueryLayout.First++ },
		"key and value exchanged": func(w *lower.Binding) { w.KeyLayout, w.ValueLayout = w.ValueLayout, w.KeyLayout },
		"counts of the longest": func(w *lower.Binding) {
			w.LengthTracked = &fused.LengthTrackedCache{Last: w.LengthTracked.Total, Total: w.LengthTracked.Total}
		},
		"the counts forgotten": func(w *lower.Binding) { w.LengthTracked = nil },
	} {
		t.Run(what, func(t *testing.T) {
			var refusal *graph.Refusal
			if err := m.prove(m.measured.Attention, damage); !errors.As(err, &refusal) {
				t.Errorf("got %v, want a refusal", err)
			}
		})
	}
}

// TestSharedCounts: the layers share one proof, and the nodes that count.
func TestSharedCounts(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	m := kit.OpenModel(t, "../../../../testdata/models/"+genai+"/model.onnx")
	before := map[string]string{}
	for _, list := range [][]*onnx.ValueInfo{m.Graph.Inputs, m.Graph.Outputs} {
		for _, v := range list {
			before[v.Name] = describe(v)
		}
	}
	report, err := kit.Rewrite(context.Background(), m, rewrite.Options{AllowUnchanged: true})
	if err != nil {
		t.Fatal(err)
	}
	if report.Rewritten() != 2 || report.Sites[0].Proof != report.Sites[1].Proof {
		t.Errorf("%d sites are rewritten, with proofs %p and %p", report.Rewritten(), report.Sites[0].Proof, report.Sites[1].Proof)
	}
	counts := map[string]int{}
	for _, n := range m.Graph.Nodes {
		counts[n.OpType]++
	}
	if counts["Max"] != 1 || counts["GroupQueryAttention"] != 0 || counts["RotaryAttention"] != 2 {
		t.Errorf("the patched model has %v", counts)
	}
	for _, list := range [][]*onnx.ValueInfo{m.Graph.Inputs, m.Graph.Outputs} {
		for _, v := range list {
			if before[v.Name] != describe(v) {
				t.Errorf("%s became %s", before[v.Name], describe(v))
			}
			delete(before, v.Name)
		}
	}
	if len(before) > 0 {
		t.Errorf("lost: %v", before)
	}
}

func describe(v *onnx.ValueInfo) string {
	text := v.Name + " " + v.Type.String()
	for _, d := range v.Shape {
		text += " " + d.String()
	}
	return text
}

// A row that is told to have one token fewer than the caller gave would take the last one for padding: the op gives
// zeros for it, and the original something else.
func TestLengthsThatDoNotCount(t *testing.T) {
	testruntime.Require(t)
	m := kit.OpenModel(t, kit.Model(genai))
	m.Graph.AddInitializer(onnx.NewTensor("one", onnx.Int32, nil, []byte{1, 0, 0, 0}))
	fewer := ""
	for _, n := range m.Graph.Nodes {
		if n.OpType != "GroupQueryAttention" {
			continue
		}
		if fewer == "" {
			fewer = "fewer"
			m.Graph.InsertNode(n, onnx.NewNode("Sub", []string{n.Inputs[5], "one"}, []string{fewer}))
		}
		n.Inputs[5] = fewer
	}
	report, err := kit.Rewrite(t.Context(), m, rewrite.Options{AllowUnchanged: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range report.Sites {
		if s.Status != rewrite.Unchanged || !strings.Contains(s.Reason, "do not count the tokens") {
			t.Errorf("layer %d is %s: %s", s.Layer, s.Status, s.Reason)
		}
	}
}
