package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/validate"
)

// validation runs the command's comparison on files that the command wrote.
type validation struct {
	*testing.T
	options rewrite.Options
	models  map[string]string // what was rewritten already
}

func newValidation(t *testing.T) *validation {
	v := &validation{T: t, models: map[string]string{}}
	runtime, library := testruntime.Paths(t)
	t.Setenv(customop.RuntimeVariable, runtime)
	t.Setenv(customop.LibraryVariable, library)
	worker, err := cli.Self()
	if err != nil {
		t.Fatal(err)
	}
	v.options = rewrite.Options{Evaluation: rewrite.Evaluation{Runtime: runtime, Library: library, Worker: []string{worker}}}
	return v
}

// rewrite gives a model what the flags say.
func (v *validation) rewrite(original, flags string) string {
	v.Helper()
	key := original + " " + flags
	if v.models[key] == "" {
		out := filepath.Join(v.TempDir(), "patched.onnx")
		var stdout, stderr bytes.Buffer
		args := append([]string{model(original), "-o", out}, strings.Fields(flags)...)
		if code := run(context.Background(), args, &stdout, &stderr); code != 0 {
			v.Fatalf("%s: exit code %d: %s%s", key, code, &stdout, &stderr)
		}
		v.models[key] = out
	}
	return v.models[key]
}

// changed is a copy of a model after a change.
func (v *validation) changed(path string, change func(*onnx.Model)) string {
	v.Helper()
	m, err := onnx.Open(path)
	if err != nil {
		v.Fatal(err)
	}
	defer m.Close()
	change(m)
	out := filepath.Join(v.TempDir(), "changed.onnx")
	if err := m.Save(out, onnx.SaveOptions{}); err != nil {
		v.Fatal(err)
	}
	return out
}

func (v *validation) validate(original, patched string, length int64) (*validate.Report, error) {
	return validate.Run(context.Background(), model(original), patched, validate.Options{Rewrite: v.options, Length: length})
}

const (
	yarn    = "--scaling yarn:factor=4,original_max_position_embeddings=32"
	far     = "--positions string:shift=5461,window=32"
	near    = "--positions string:shift=12,window=4"
	window  = "--mask sliding-window:window=4096"
	extend  = "--positions self-extend:group=4,window=8"
	intra   = "--mask intra-document --documents input"
	onnxed  = " --target onnx"
	contrib = "--target contrib"
)

// A model that was damaged after the rewrite is not what it should be, and the first place that
// differs is named.
func TestDamaged(t *testing.T) {
	v := newValidation(t)
	for _, c := range testsample.Of(t, []struct {
		name, model, flags string
		damage             func(*onnx.Model)
		first              string // in the place that is named; "" where the nodes are others
	}{
		{"scale", "llama__optimum", "", by("scale", 1.01), "differs in scale"},
		{"the lowest frequency", "llama__optimum", "", by("frequencies", 1.05), "differs in frequencies"},
		{"the lowest frequency under yarn", "llama__optimum", yarn, by("frequencies", 1.05), "differs in frequencies"},
		{"gain", "llama__optimum", yarn, by("gain", 1.01), "differs in gain"},
		{"a window beyond the tokens", "llama__optimum", window, by("window", 0.5), "differs in window"},
		{"a shift beyond the tokens", "llama__optimum", far, op(func(n *onnx.Node) {
			for _, a := range n.Attributes {
				if a.Type == onnx.AttrInts && len(a.Ints) > 0 && a.Ints[len(a.Ints)-1] == 5461 {
					n.SetAttribute(onnx.IntsAttr(a.Name, append(slices.Clone(a.Ints[:len(a.Ints)-1]), 5000)...))
				}
			}
		}), "differs in"},
		{"key for value", "llama__optimum", yarn, op(func(n *onnx.Node) { n.Inputs[2] = n.Inputs[1] }), "input 2"},
		{"another layer's past", "llama__optimum", yarn, op(func(n *onnx.Node) { n.Inputs[3] = "past_key_values.0.key" }), "input 3"},
		{"no padding", "llama__optimum", "", op(func(n *onnx.Node) { n.Inputs[6] = "" }), "input 6"},
		{"no positions", "llama__optimum", yarn, op(func(n *onnx.Node) { n.Inputs[5] = "" }), "input 5"},
		{"caches exchanged", "llama__optimum", "", func(m *onnx.Model) {
			list := nodes(m, "RotaryAttention")
			list[0].Outputs[1], list[1].Outputs[1] = list[1].Outputs[1], list[0].Outputs[1]
		}, "comes from a different node"},
		{"a stale cache", "llama__optimum", "", op(func(n *onnx.Node) {
			n.Outputs[1] = "present.lost"
		}), ""},
		{"head's weights", "llama__optimum", yarn, weight(-1, scaled(1.01)), "different numbers"},
		{"one weight of an MLP", "llama__optimum", yarn, weight(-3, one), "different numbers"},
		{"one weight without a method", "llama__optimum", "", weight(-3, one), "different numbers"},
		{"a lost norm", "gpt_neox__dynamo18", yarn, weight(1, scaled(0)), "different numbers"},
		{"its record claims another factor", "llama__optimum", yarn, given("yarn:factor=2,original_max_position_embeddings=32", "factor", 2), "differs in frequencies"},
		{"its record claims no method", "llama__optimum", yarn, record(func(r *provenance.Record) { r.Edits = nil }), "differs in exact_angles"},
		{"its record is lost", "llama__optimum", yarn, func(m *onnx.Model) { m.RemoveMetadata(provenance.Key) }, ""},
		{"its record is lost, and one weight", "llama__optimum", "", func(m *onnx.Model) {
			m.RemoveMetadata(provenance.Key)
			weight(-3, one)(m)
		}, ""},
		{"its record measures what the op does", "llama__optimum", "", func(m *onnx.Model) {
			by("scale", 1.0001)(m)
			record(func(r *provenance.Record) { r.Sites[0].Original.Scale *= 1.0001 })(m)
		}, "differs in scale"},
		{"a layer without the method has it", "llama__optimum", yarn + "@0", func(m *onnx.Model) {
			list := nodes(m, "RotaryAttention")
			list[1].SetAttribute(list[0].Attribute("frequencies"))
		}, "differs in frequencies"},
		{"method taken out of a layer", "llama__optimum", extend, op(func(n *onnx.Node) {
			n.Attributes = slices.DeleteFunc(n.Attributes, func(a *onnx.Attribute) bool { return strings.Contains(a.Name, "band") })
		}), "differs in"},
		{"a fixed cache's mask", "llama__optimum", "--kv fixed:capacity=64", by("scale", 1.01), "differs in scale"},
		{"documents seen through", "llama__optimum", intra, op(func(n *onnx.Node) { n.Inputs[9] = "" }), "input 9"},
		{"standard operators", "llama__optimum", yarn + onnxed, weight(-3, one), "different numbers"},
		{"standard operators, a table", "llama__optimum", yarn + onnxed, func(m *onnx.Model) {
			for _, x := range m.Graph.Initializers {
				if x.Type == onnx.Float && slices.Contains(x.Dims, 8) && x.Len() == 8 {
					values, _ := x.Float64s()
					var raw []byte
					for i, f := range values {
						if i == 7 {
							f *= 1.05
						}
						raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(f)))
					}
					m.Graph.Initializers[slices.Index(m.Graph.Initializers, x)] = onnx.NewTensor(x.Name, onnx.Float, x.Dims, raw)
					return
				}
			}
			panic("no table")
		}, "different numbers"},
		{"GroupQueryAttention", "llama__optimum", contrib, func(m *onnx.Model) {
			n := nodes(m, "GroupQueryAttention")[1]
			n.SetAttribute(onnx.FloatAttr("scale", 0.2501))
		}, "differs in scale"},
		{"float16", "llama__dynamo18-fp16", "", by("scale", 1.001), "differs in scale"},
		{"int8", "llama__optimum-int8", "", by("scale", 1.001), "differs in scale"},
		{"a fallback is added", "llama__optimum", yarn + " --fallback none", func(m *onnx.Model) {
			if _, err := definition.Write(m); err != nil {
				panic(err)
			}
		}, "the fallback RotaryAttention was added"},
		{"a product of its fallback", "llama__optimum", yarn, adds, "computes something else"},
		{"another version of the operators", "llama__optimum", yarn, func(m *onnx.Model) { m.RequireOpset("", 19) }, "version 19 of the operators"},
		{"cache outputs exchanged", "llama__optimum", yarn, exchange, `"present.0.value" is in the place of "present.0.key"`},
		{"cache outputs exchanged, no record", "llama__optimum", "", func(m *onnx.Model) {
			m.RemoveMetadata(provenance.Key)
			exchange(m)
		}, `"present.0.value" is in the place of "present.0.key"`},
		{"of another version, one weight", "llama__optimum", yarn, then(weight(-3, lastPlace), older), "different numbers"},
		{"of another version, one weight before a layer", "llama__optimum", yarn, then(weight(2, lastPlace), older), "different numbers"},
		{"of another version, an op", "llama__optimum", yarn, then(older, by("gain", 1.0000001)), "differs in gain"},
		{"of another version without methods, one weight", "llama__dynamo18", "", then(weight(-3, lastPlace), older), "different numbers"},
		{"of another version, the operators", "llama__optimum", yarn, then(func(m *onnx.Model) { m.RequireOpset("", 19) }, older), "version 19 of the operators"},
		{"of another version, a product of its fallback", "llama__optimum", yarn, then(older, adds), "computes something else"},
		{"a NaN at late tokens", "llama__optimum", "", func(m *onnx.Model) {
			n := nodes(m, "RotaryAttention")[1]
			n.SetAttribute(onnx.FloatAttr("softcap", 1e-30))
		}, "differs in softcap"},
	}, 6) {
		t.Run(c.name, func(t *testing.T) {
			patched := v.changed(v.rewrite(c.model, c.flags), c.damage)
			r, err := v.validate(c.model, patched, 24)
			if err != nil {
				if c.first == "" {
					return // it cannot even be run
				}
				t.Fatal(err)
			}
			if r.Verdict != validate.Different && r.Verdict != validate.NotAsClaimed {
				t.Errorf("%s; %+v %q", r.Verdict, r.Rebuilt, r.Notes)
			}
			if named := place(r); !strings.Contains(named, c.first) {
				t.Errorf("the first place is not named: want %q, of %q (%q)", c.first, named, r.Notes)
			}
		})
	}
}

// An honest model is what it should be.
func TestHonest(t *testing.T) {
	v := newValidation(t)
	for _, c := range testsample.Of(t, []struct {
		model, flags string
		verdict      validate.Verdict
	}{
		{"llama__optimum-int8", "", validate.Same},
		{"llama__optimum-int8", yarn, validate.AsClaimed},
		{"llama__genai-int4", "", validate.Same},
		{"llama__genai-int4", yarn, validate.AsClaimed},
		{"llama__genai-fp16", "", validate.Same},
		{"llama__dynamo18-fp16", yarn, validate.AsClaimed},
		{"llama__dynamo18-fp16", yarn + onnxed, validate.AsClaimed},
		{"llama__dynamo18-nocache", "", validate.Same},
		{"llama__ts17-fixed", "", validate.Same},
		{"llama__ts17-fixed", yarn, validate.AsClaimed},
		{"qwen3__ts17-static", "", validate.Same},
		{"gpt_neox__dynamo18-merged", "", validate.Same},
		{"gpt_neox__dynamo18-merged", yarn, validate.NotShown}, // layers inside an If are not compared with a reference
		{"gemma3_text__dynamo18", window, validate.AsClaimed},
		{"llama__genai-fp32", "", validate.Same},
		{"llama__genai-fp32", near, validate.AsClaimed},
		{"llama__optimum", "--target onnx", validate.Same},
		{"llama__optimum", contrib, validate.Same},
		{"llama__optimum", yarn + onnxed, validate.AsClaimed},
		{"llama__optimum", near + onnxed, validate.AsClaimed},
		{"llama__optimum", yarn + " " + contrib, validate.AsClaimed},
		{"llama__optimum", extend, validate.AsClaimed},
		{"llama__optimum", far, validate.AsClaimed},
		{"llama__optimum", intra, validate.AsClaimed},
		{"llama__optimum", "--logits last", validate.Same},
		{"llama__optimum", "--kv fixed:capacity=64 " + yarn, validate.AsClaimed},
		{"llama__optimum", "--opset 18", validate.Same},
		{"llama__optimum", "--fallback none", validate.Same},
		{"llama__optimum", "--cache raw " + yarn, validate.AsClaimed},
		{"llama__optimum", "--layers 0", validate.Same},
		{"llama__dynamo23", yarn, validate.AsClaimed},
		{"gptj__ts17", "", validate.Same},
	}, 4) {
		t.Run(c.model+" "+c.flags, func(t *testing.T) {
			r, err := v.validate(c.model, v.rewrite(c.model, c.flags), 24)
			if err != nil {
				t.Fatal(err)
			}
			if r.Verdict != c.verdict || r.Rebuilt == nil || r.Rebuilt.First != nil {
				t.Errorf("%s, want %s; %+v %q", r.Verdict, c.verdict, r.Rebuilt, r.Notes)
			}
		})
	}
}

// A file of another version is confirmed where this version writes the same. Its fallback is known by its body, or run
// on a few tokens in place of one op, which confirms nothing.
func TestFallbackOfAnotherVersion(t *testing.T) {
	v := newValidation(t)
	const original = "llama__optimum"
	renamed := func(m *onnx.Model) {
		f := definition.Of(m)[0]
		old := f.Nodes[len(f.Nodes)/2].Outputs[0]
		for _, n := range f.Nodes {
			for _, list := range [][]string{n.Inputs, n.Outputs} {
				for i := range list {
					if list[i] == old {
						list[i] = "renamed"
					}
				}
			}
		}
	}
	reordered := func(m *onnx.Model) { // a sum the other way round, which no version writes
		for _, n := range definition.Of(m)[0].Nodes {
			if n.OpType == "Mul" {
				slices.Reverse(n.Inputs)
			}
		}
	}
	broken := func(m *onnx.Model) {
		for _, n := range definition.Of(m)[0].Nodes {
			if n.OpType == "Concat" { // of an axis that no value has
				n.SetAttribute(onnx.IntAttr("axis", 77))
			}
		}
	}
	for name, c := range map[string]struct {
		change  func(*onnx.Model)
		verdict validate.Verdict
		known   bool
	}{
		"known":       {older, validate.AsClaimed, true},
		"other names": {then(older, renamed), validate.AsClaimed, true},
		"unknown":     {then(older, reordered), validate.NotConfirmed, false},
		"not run":     {then(older, broken), validate.NotShown, false},
		"without one": {then(older, definition.Remove), validate.AsClaimed, true},
		"other positions": {then(older, func(m *onnx.Model) {
			n := nodes(m, "RotaryAttention")[1]
			m.Graph.InsertNode(n, onnx.NewNode("Identity", []string{n.Inputs[5]}, []string{"positions_of_its_own"}))
			n.Inputs[5] = "positions_of_its_own"
		}), validate.AsClaimed, true},
	} {
		r, err := v.validate(original, v.changed(v.rewrite(original, yarn), c.change), 24)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if r.Verdict != c.verdict || (r.Fallback == nil) != c.known || !c.known && r.Fallback.Agrees != (r.Verdict == validate.NotConfirmed) {
			t.Errorf("%s: %s, want %s; %+v %+v %q", name, r.Verdict, c.verdict, r.Fallback, r.Rebuilt, r.Notes)
		}
	}
}
