package golden_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// quantisers are the scales and zero points of a test.
type quantisers struct {
	*patient
	scale, zero string
}

func (p *patient) quantisers() quantisers { return quantisers{p, p.Float(0.03), p.byte(128)} }

func (p *patient) byte(v byte) string {
	t := onnx.NewTensor(p.Fresh("byte"), onnx.Uint8, []int64{}, []byte{v})
	p.Graph.AddInitializer(t)
	return t.Name
}

func (q quantisers) to(old string) string { return q.Op("QuantizeLinear", old, q.scale, q.zero) }

func (q quantisers) back(old string) string { return q.Op("DequantizeLinear", old, q.scale, q.zero) }

func (q quantisers) round(old string) string {
	return q.back(q.to(old))
}

// swapped exchanges heads and tokens.
func (p *patient) swapped(v string) string {
	return p.Node("Transpose", []string{v}, onnx.IntsAttr("perm", 0, 2, 1, 3))
}

// TestRounded: query and key that are rounded behind their rotation keep the attention, and a
// scaling changes the rotation alone. What comes out is, bit for bit, what rounding the scaled
// model the same way gives.
func TestRounded(t *testing.T) {
	testruntime.Require(t)
	scaling := rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=16")}, Target: rewrite.PlainONNX}
	for _, c := range testsample.Of(t, []struct {
		name   string
		models []string
		change func(p *patient)
	}{
		{"query and key", []string{"llama__ts17", "gpt_neox__ts17"}, func(p *patient) {
			q := p.quantisers()
			p.Query(q.round)
			p.Key(q.round)
		}},
		{"rearranged on the way, with a cache", []string{"llama__dynamo18-eager"}, func(p *patient) {
			q := p.quantisers()
			p.Query(func(old string) string { return p.swapped(q.back(p.swapped(q.to(old)))) })
			for _, s := range p.Sites {
				p.After(s.Key.Cache.Present, q.round) // heads are repeated behind it
			}
			p.Value(q.round)
		}},
		{"twice", []string{"llama__ts17"}, func(p *patient) {
			q := p.quantisers()
			other := quantisers{p, p.Float(0.07), p.byte(100)}
			p.Query(func(old string) string { return other.round(q.round(old)) })
			p.Key(q.round)
		}},
	}, 1) {
		for _, name := range c.models {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				changed := func(p *patient) string {
					c.change(p)
					return p.Saved()
				}
				m := kit.OpenModel(t, changed(newPatient(t, name)))
				report, err := kit.Rewrite(context.Background(), m, scaling)
				if err != nil {
					t.Fatal(err)
				}
				for i, s := range report.Sites {
					if !s.RotationOnly || s.Theta != 10000 {
						t.Errorf("layer %d is %+v; its rotation alone was expected", i, s)
					}
				}
				if n := len(slices.DeleteFunc(slices.Clone(report.Warnings), func(w string) bool { return !strings.Contains(w, "rounded to 8 bits") })); n != 1 {
					t.Errorf("the warnings are %q; one about rounding was expected", report.Warnings)
				}
				patched := filepath.Join(t.TempDir(), "patched.onnx")
				if err := m.Save(patched, onnx.SaveOptions{}); err != nil {
					t.Fatal(err)
				}

				scaled := kit.OpenModel(t, kit.Model(name))
				if _, err := kit.Rewrite(context.Background(), scaled, scaling); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(t.TempDir(), "scaled.onnx")
				if err := scaled.Save(path, onnx.SaveOptions{}); err != nil {
					t.Fatal(err)
				}
				architecture, _, _ := strings.Cut(name, "__")
				g := kit.ReadGolden(t, architecture, "yarn4", false)
				all := []int64{g.Sequence.Length}
				want := kit.Chunked(t, kit.Open(t, changed(patientAt(t, path))), g.Sequence, all)
				if !slices.Equal(kit.Chunked(t, kit.Open(t, patched), g.Sequence, all), want) {
					t.Error("it is not what rounding the scaled model gives")
				}
				if slices.Equal(kit.Chunked(t, kit.Open(t, path), g.Sequence, all), want) {
					t.Error("rounding changes nothing: this tests nothing")
				}
			})
		}
	}
}

// TestRoundedOtherwise: what looks like query and key that are rounded, and changes them in
// another way, or rounds what turns them. A scaling leaves such sites as they are.
func TestRoundedOtherwise(t *testing.T) {
	testruntime.Require(t)
	const none, angles = "it has no rotation", "this node quantises what rotates the query"
	for _, c := range testsample.Of(t, []struct {
		name   string
		model  string
		change func(p *patient)
		why    string
	}{
		{"by a scale of each call", "llama__ts17", func(p *patient) {
			dynamic := func(old string) string {
				n := onnx.NewNode("DynamicQuantizeLinear", []string{old}, []string{p.Fresh("y"), p.Fresh("scale"), p.Fresh("zero")})
				p.Graph.InsertNode(nil, n)
				return p.Op("DequantizeLinear", n.Outputs...)
			}
			p.Query(dynamic)
			p.Key(dynamic)
		}, none},
		{"by a scale of the call's length", "llama__ts17", func(p *patient) {
			q := p.quantisers()
			q.scale = p.Op("Mul", p.Float(0.003), p.Cast(p.Size("input_ids", 1), onnx.Float))
			p.Query(q.round)
			p.Key(q.round)
		}, none},
		{"back by another scale", "llama__ts17", func(p *patient) {
			q := p.quantisers()
			other := q
			other.scale = p.Float(0.04)
			change := func(old string) string { return other.back(q.to(old)) }
			p.Query(change)
			p.Key(change)
		}, none},
		{"back by another zero point", "llama__ts17", func(p *patient) {
			q := p.quantisers()
			other := q
			other.zero = p.byte(129)
			change := func(old string) string { return other.back(q.to(old)) }
			p.Query(change)
			p.Key(change)
		}, none},
		{"a scale for each channel", "llama__ts17", func(p *patient) {
			var scales []float32
			for i := range 16 {
				scales = append(scales, 0.02+0.001*float32(i))
			}
			s, z := p.Floats([]int64{16}, scales...), onnx.NewTensor(p.Fresh("zeros"), onnx.Int8, []int64{16}, make([]byte, 16))
			p.Graph.AddInitializer(z)
			round := func(axis int64) func(string) string {
				return func(old string) string {
					a := onnx.IntAttr("axis", axis)
					return p.Node("DequantizeLinear", []string{p.Node("QuantizeLinear", []string{old, s, z.Name}, a), s, z.Name}, a)
				}
			}
			p.Query(round(3))
			p.Key(round(2))
		}, none},
		{"multiplied behind it", "llama__ts17", func(p *patient) {
			q := p.quantisers()
			change := func(old string) string { return p.Op("Mul", q.round(old), p.Float(0.5)) }
			p.Query(change)
			p.Key(change)
		}, none},
		{"the key of a call before it is stored", "llama__optimum", func(p *patient) {
			q := p.quantisers()
			p.Query(q.round)
			for _, s := range p.Sites {
				p.After(s.Key.Cached(), q.round)
			}
		}, "query and key are rotated differently"},
		{"angles", "llama__ts17", func(p *patient) {
			q := p.quantisers()
			p.Query(q.round)
			p.Key(q.round)
			cos, sin := p.Tables()
			for _, n := range []*onnx.Node{cos, sin} {
				p.Into(n, 0, quantisers{p, p.Float(0.25), p.byte(0)}.round)
			}
		}, angles},
		{"cosines", "llama__ts17", func(p *patient) {
			q := p.quantisers()
			p.Query(q.round)
			p.Key(q.round)
			cos, _ := p.Tables()
			p.After(cos.Outputs[0], quantisers{p, p.Float(0.01), p.byte(128)}.round)
		}, angles},
	}, 4) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t, c.model)
			c.change(p)
			m := kit.OpenModel(t, p.Saved())
			before := m.Digest()
			report, err := kit.Rewrite(context.Background(), m, rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=4")}, Target: rewrite.PlainONNX})
			if !errors.Is(err, rewrite.ErrPartial) || m.Digest() != before {
				t.Errorf("error %v; the model should stay as it is", err)
			}
			for i, s := range report.Sites {
				if s.Status != rewrite.Unchanged || !strings.Contains(s.Reason, c.why) {
					t.Errorf("layer %d is %s: %s; %q was expected", i, s.Status, s.Reason, c.why)
				}
			}
		})
	}
}
