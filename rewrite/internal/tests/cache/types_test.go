package cache_test

import (
	"context"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/validate"
)

// Caches of another element type, growing and of fixed capacity, by the op library and by the fallback: the
// logits are those of the original whose caches are rounded alike between calls.
func TestCacheTypes(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, name := range testsample.Of(t, []string{"llama__dynamo18", "llama__optimum", "qwen3__dynamo23", "gpt_neox__optimum", "gpt_neox__dynamo18-fusions"}, 2) {
		for _, typ := range testsample.Of(t, []string{"int8", "float16", "bfloat16"}, 2) {
			t.Run(name+" "+typ, func(t *testing.T) {
				architecture, _, _ := strings.Cut(name, "__")
				g := kit.ReadGolden(t, architecture, "plain", true)
				rounded := openStored(t, kit.Model(name), typ)
				growing, _ := kit.Patch(t, kit.Model(name), rewrite.Options{Cache: rewrite.Cache{Type: typ}})
				fixed, _ := kit.Patch(t, kit.Model(name), rewrite.Options{Cache: rewrite.Cache{Capacity: 50, Type: typ}})
				for way, chunks := range kit.Ways {
					want := kit.Chunked(t, rounded, g.Sequence, chunks)
					exact := kit.Chunked(t, kit.Open(t, kit.Model(name)), g.Sequence, chunks)
					cost := kit.Largest(kit.Real(g, want), kit.Real(g, exact))
					for what, d := range map[string]*decoder.Decoder{"growing": kit.Open(t, growing), "fixed": kit.Open(t, fixed), "growing, fallback": kit.OpenPlainly(t, growing), "fixed, fallback": kit.OpenPlainly(t, fixed)} {
						off := kit.Largest(kit.Real(g, kit.Chunked(t, d, g.Sequence, chunks)), kit.Real(g, want))
						if !(off <= 2e-4) && !(off <= cost/8) { // a number between two integers may become either
							t.Errorf("%s, %s: off by %.2g from the original with such caches; the type itself costs %.2g", what, way, off, cost)
						}
						if len(chunks) > 1 && cost == 0 {
							t.Errorf("%s: rounding the caches changes nothing", way)
						}
					}
				}
			})
		}
	}
}

// openStored is a model whose caches are rounded between calls.
func openStored(t *testing.T, path, typ string) *decoder.Decoder {
	t.Helper()
	d, err := decoder.Open(context.Background(), kit.Local(t), path, decoder.Options{Stored: definition.CacheTypes[typ]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// A rewrite that carries the earlier one on keeps the type, and --restore gives the caches their own one back.
func TestCacheTypeAgain(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	path, _ := kit.Patch(t, kit.Model("llama__dynamo18"), rewrite.Options{Cache: rewrite.Cache{Type: "int8"}})
	types := func(path string) (typ onnx.DataType, inputs, outputs int) {
		m := kit.OpenModel(t, path)
		for _, v := range m.Graph.Inputs {
			if len(v.Shape) == 4 {
				typ = v.Type
				inputs++
			}
			if v.Type == onnx.Int8 {
				return onnx.Int8, len(m.Graph.Inputs), len(m.Graph.Outputs)
			}
		}
		return typ, len(m.Graph.Inputs), len(m.Graph.Outputs)
	}
	_, inputs, outputs := types(kit.Model("llama__dynamo18"))
	if typ, in, out := types(path); typ != onnx.Int8 || in != inputs+4 || out != outputs+4 {
		t.Fatalf("caches of %v, %d inputs and %d outputs; want int8, %d and %d", typ, in, out, inputs+4, outputs+4)
	}
	longer, report := kit.Patch(t, path, rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=2")}, Earlier: rewrite.Earlier{Carried: true}})
	if typ, in, _ := types(longer); typ != onnx.Int8 || in != inputs+4 {
		t.Errorf("after another method caches are of %v with %d inputs", typ, in)
	}
	if !strings.Contains(strings.Join(report.Edits, " "), "type=int8") {
		t.Errorf("its report has the edits %v", report.Edits)
	}
	back, _ := kit.Patch(t, longer, rewrite.Options{Earlier: rewrite.Earlier{Restore: true}})
	if typ, in, out := types(back); typ != onnx.Float || in != inputs || out != outputs {
		t.Errorf("restored: caches of %v, %d inputs and %d outputs; want float, %d and %d", typ, in, out, inputs, outputs)
	}
}

// What cannot have such caches is refused with a reason.
func TestCacheTypesRefused(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, c := range []struct {
		model, typ string
		target     rewrite.Target
		want       string
	}{
		{"llama__dynamo18", "int4", "", "expected float16, bfloat16 or int8"},
		{"llama__dynamo18-fp16", "bfloat16", "", "only caches of float32 can become bfloat16"},
		{"llama__dynamo18-nocache", "int8", "", "no key-value cache"},
		{"llama__genai-fp32", "int8", "", "GroupQueryAttention's, whose type cannot be changed"},
		{"llama__dynamo18", "int8", rewrite.Contrib, "needs fixed scales"},
	} {
		m := kit.OpenModel(t, kit.Model(c.model))
		_, err := kit.Rewrite(context.Background(), m, rewrite.Options{Cache: rewrite.Cache{Type: c.typ}, Target: c.target})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s as %s: %v, want %q", c.model, c.typ, err, c.want)
		}
	}
}

// Where a few channels of the keys are much larger than the others, all channels of a row get coarse steps.
// validate says so of int8, and not of float16, nor of keys without such channels.
func TestCacheTypeCostly(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, c := range []struct {
		bias float32 // of two channels, as Qwen2's keys have it
		typ  string
		want bool
	}{{1, "int8", false}, {100, "int8", true}, {100, "float16", false}} {
		p := kit.NewPatient(t, "llama__dynamo18")
		for _, s := range p.Sites {
			bias := make([]float32, 16)
			bias[3], bias[10] = c.bias, -c.bias
			p.After(s.Key.Boundary, func(old string) string { return p.Op("Add", old, p.Floats([]int64{16}, bias...)) })
		}
		path := p.Saved()
		cost, err := validate.CacheCost(context.Background(), path, definition.CacheTypes[c.typ], rewrite.Evaluation{})
		if err != nil || (cost.KL > validate.CostlyKL) != c.want {
			t.Errorf("bias %g, %s: before the rewrite the cost is %+v, %v", c.bias, c.typ, cost, err)
		}
		patched, _ := kit.Patch(t, path, rewrite.Options{Cache: rewrite.Cache{Type: c.typ}})
		report, err := validate.Run(context.Background(), path, patched, validate.Options{Length: 64, OutputsOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		most := report.Costly()
		if !report.Same || (most != nil) != c.want {
			t.Errorf("bias %g, %s: same %v, costly %+v, cases %+v", c.bias, c.typ, report.Same, most, report.Cases)
		}
	}
}
