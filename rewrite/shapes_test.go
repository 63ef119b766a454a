package rewrite

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
)

func nextUp(x float32) float32 { return math.Nextafter32(x, float32(math.Inf(1))) }

func drawExtent(t *rapid.T) dim.Extent {
	c := rapid.Int64Range(-1000, 1000)
	return dim.Extent{One: c.Draw(t, "one"), B: c.Draw(t, "B"), L: c.Draw(t, "L"), P: c.Draw(t, "P"), BL: c.Draw(t, "BL"), BP: c.Draw(t, "BP")}
}

func sampled(points []dim.Point, f func(dim.Point) int64) []int64 {
	var values []int64
	for _, p := range points {
		values = append(values, f(p))
	}
	return values
}

func TestFitExtentRecoversPolynomials(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		points := dim.SamplePoints(true)
		want := drawExtent(t)
		got, ok := dim.FitExtent(points, sampled(points, want.At))
		if !ok || got != want {
			t.Fatalf("%v became %v (%v)", want, got, ok)
		}
	})
}

// TestFitExtentWithoutPast: past stays 0 at every point, so nothing may be said of it.
func TestFitExtentWithoutPast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		points := dim.SamplePoints(false)
		want := drawExtent(t)
		want.P, want.BP = 0, 0
		got, ok := dim.FitExtent(points, sampled(points, want.At))
		if !ok || got != want {
			t.Fatalf("%v became %v (%v)", want, got, ok)
		}
	})
}

// TestFitExtentRefuses what is no polynomial of this form, the wrong value at
// any one point included.
func TestFitExtentRefuses(t *testing.T) {
	points := dim.SamplePoints(true)
	for name, f := range map[string]func(p dim.Point) int64{
		"length squared":    func(p dim.Point) int64 { return p.L * p.L },
		"past squared":      func(p dim.Point) int64 { return p.P * p.P },
		"length · past":     func(p dim.Point) int64 { return p.L * p.P },
		"batch squared":     func(p dim.Point) int64 { return p.B * p.B },
		"minimum":           func(p dim.Point) int64 { return min(p.L+p.P, 12) },
		"maximum":           func(p dim.Point) int64 { return max(p.L, 5) },
		"half":              func(p dim.Point) int64 { return (p.L + p.P) / 2 },
		"modulo":            func(p dim.Point) int64 { return p.P % 4 },
		"batch·length·past": func(p dim.Point) int64 { return p.B * p.L * p.P },
	} {
		if e, ok := dim.FitExtent(points, sampled(points, f)); ok {
			t.Errorf("%s is taken for %v", name, e)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		values := sampled(points, drawExtent(t).At)
		// The first six determine the extent; a wrong one among them shows at
		// the others unless it is itself an extent.
		i := rapid.IntRange(0, len(points)-1).Draw(t, "point")
		values[i] += rapid.Int64Range(1, 1000).Draw(t, "off")
		if e, ok := dim.FitExtent(points, values); ok {
			t.Fatalf("with point %d wrong it is taken for %v", i, e)
		}
	})
}

func TestExtentString(t *testing.T) {
	for want, e := range map[string]dim.Extent{
		"0":                            {},
		"7":                            dim.ConstantExtent(7),
		"batch":                        dim.BatchExtent,
		"length + past":                dim.TotalExtent,
		"-2·past + 4·batch·length + 1": {One: 1, P: -2, BL: 4},
	} {
		if got := e.String(); got != want {
			t.Errorf("%q, %q was expected", got, want)
		}
	}
}

// withoutWeights returns the path of a model whose large weights are in external
// data that is not there, as a graph without its weights is passed around.
func withoutWeights(t *testing.T, path string) string {
	t.Helper()
	m := parsed(t, path)
	outside := onnxpb.TensorProto_EXTERNAL
	moved := 0
	for _, w := range m.Graph.Initializer {
		if len(w.RawData) < 1024 {
			continue
		}
		w.RawData = nil
		w.DataLocation = &outside
		w.ExternalData = []*onnxpb.StringStringEntryProto{{Key: proto.String("location"), Value: proto.String("weights.bin")}}
		moved++
	}
	if moved < 10 {
		t.Fatalf("only %d weights are large", moved)
	}
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWithoutWeights: sites are found, lifted and proven when no weight file is there.
func TestWithoutWeights(t *testing.T) {
	needRuntime(t)
	for _, name := range []string{"llama__optimum", "gpt_neox__dynamo18", "llama__optimum-int8"} {
		p := newPatient(t, name)
		// A weight may stand behind other nodes, as tied ones do.
		for _, s := range p.sites {
			p.into(p.up(s.Query.Boundary, "MatMul", "MatMulInteger"), 1, func(w string) string {
				turn := onnx.IntsAttr("perm", 1, 0)
				return p.node("Transpose", []string{p.node("Transpose", []string{w}, turn)}, turn)
			})
		}
		m := open(t, withoutWeights(t, p.save()))
		for _, w := range m.Graph.Initializers {
			if _, _, _, outside := w.External(); !outside {
				continue
			}
			if _, err := w.Bytes(); err == nil {
				t.Fatalf("%s: the weight %s is still there", name, w.Name)
			}
		}
		report, err := Rewrite(context.Background(), m, Options{WithoutWeights: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Warnings) != 1 || !strings.Contains(report.Warnings[0], `external data "weights.bin" is missing`) {
			t.Errorf("%s: the warnings are %q", name, report.Warnings)
		}
		for _, s := range report.Sites {
			if s.Status != Rewritten {
				t.Errorf("%s: layer %d is kept: %s", name, s.Layer, s.Reason)
			}
		}
		if len(report.Sites) != 2 {
			t.Errorf("%s: %d sites", name, len(report.Sites))
		}
	}
}

// needRuntime skips a test, with the reason, where what it runs is not built.
func needRuntime(t *testing.T) {
	t.Helper()
	if _, err := customop.FindRuntime(""); err != nil {
		t.Skipf("run make test, which fetches ONNX Runtime: %v", err)
	}
	if _, err := customop.FindLibrary(customop.Options{}); err != nil {
		t.Skipf("run make test, which builds the op library: %v", err)
	}
}
