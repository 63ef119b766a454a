package tables_test

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// pairs are the channel pairs of the models of testdata/tables.
const pairs = 8

// frequency is the frequency of a pair in float64.
func frequency(pair int) float64 { return math.Pow(10000, -float64(pair)/pairs) }

// angles are ways to make the angles of a table.
var angles = []struct {
	name  string
	exact bool
	of    func(position, pair int) float64
}{
	{"all in float64", true, func(p, pair int) float64 { return float64(p) * frequency(pair) }},
	{"frequencies in float32", true, func(p, pair int) float64 { return float64(p) * float64(float32(frequency(pair))) }},
	{"angles in float32", false, func(p, pair int) float64 { return float64(float32(p) * float32(frequency(pair))) }},
}

// replace gives a constant of a model other numbers, in so many rows.
func replace(m *onnx.Model, name string, rows int, values []float64) {
	m.Graph.RemoveInitializers(func(c *onnx.Tensor) bool { return c.Name == name })
	m.Graph.AddInitializer(ir.FloatTensor(name, onnx.Float, []int64{int64(rows), int64(len(values) / rows)}, values...))
}

// table is a model's table of cosines, or of sines, or of one after the other.
func table(name string, rows int, of func(position, pair int) float64) []float64 {
	waves := map[string][]func(float64) float64{"cosines": {math.Cos}, "sines": {math.Sin}, "sines_cosines": {math.Sin, math.Cos}}[name]
	var values []float64
	for p := range rows {
		for _, wave := range waves {
			for pair := range pairs {
				values = append(values, wave(of(p, pair)))
			}
		}
	}
	return values
}

// retabled is a model of testdata/tables with tables of so many rows.
func retabled(t *testing.T, name string, rows int, of func(position, pair int) float64) string {
	t.Helper()
	m := kit.OpenModel(t, filepath.Join(kit.Testdata, "tables", name+".onnx"))
	for _, n := range []string{"cosines", "sines", "sines_cosines"} {
		if m.Graph.Initializer(n) != nil {
			replace(m, n, rows, table(n, rows, of))
		}
	}
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := m.Save(path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return path
}

// exactAngles reports whether the one op of a model has them.
func exactAngles(t *testing.T, path string) bool {
	t.Helper()
	for _, n := range kit.OpenModel(t, path).Graph.Nodes {
		if n.Domain == customop.Domain {
			return n.Int("exact_angles", 0) == 1
		}
	}
	t.Fatal("the model has no op")
	return false
}

// The op rounds angles where the model's table does, and is proven at every length of the table.
func TestAnglesAsTheTablesHave(t *testing.T) {
	testruntime.Require(t)
	type spelling struct {
		name string
		rows int
	}
	var cases []spelling
	for _, rows := range []int{64, 512, 1025, 1536, 4096} {
		for _, name := range []string{"group_query", "rotary_embedding", "gathered", "indexed"} {
			cases = append(cases, spelling{name, rows})
		}
	}
	for _, c := range testsample.Of(t, cases, 4) {
		for _, a := range angles {
			t.Run(fmt.Sprintf("%s of %d rows, %s", c.name, c.rows, a.name), func(t *testing.T) {
				path, report := kit.Patch(t, retabled(t, c.name, c.rows, a.of), rewrite.Options{})
				if got := exactAngles(t, path); got != a.exact {
					t.Errorf("exact angles are %v, %v was expected", got, a.exact)
				}
				if len(report.Edits) > 0 {
					t.Errorf("the record has %v, which nobody asked for", report.Edits)
				}
				if theta := report.Sites[0].Theta; theta != 10000 {
					t.Errorf("theta is %g, 10000 was expected", theta)
				}
			})
		}
	}
}

// The whole model computes with exact angles what it did, to the end of its tables.
func TestExactAnglesInModel(t *testing.T) {
	testruntime.Require(t)
	original := retabled(t, "gathered", 4096, angles[1].of)
	path, _ := kit.Patch(t, original, rewrite.Options{})
	if !exactAngles(t, path) {
		t.Error("the op rounds angles")
	}
	kit.CompareModels(t, kit.Local(t), original, path, 4095)
}

// New tables in the place of the model's own are as exact as these were.
func TestNewTablesAsExact(t *testing.T) {
	testruntime.Require(t)
	for _, a := range angles {
		opts := rewrite.Options{Target: rewrite.PlainONNX, Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=4")}}
		path, _ := kit.Patch(t, retabled(t, "gathered", 512, a.of), opts)
		got, err := kit.OpenModel(t, path).Graph.Initializer("cosines").Float64s()
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 2048*pairs {
			t.Fatalf("%s: the table has %d numbers, %d were expected", a.name, len(got), 2048*pairs)
		}
		var exact, rounded float64
		for i, v := range got {
			p, omega := float64(i/pairs), float64(float32(float32(frequency(i%pairs))/4))
			exact = max(exact, math.Abs(v-math.Cos(p*omega)))
			rounded = max(rounded, math.Abs(v-math.Cos(float64(float32(p)*float32(omega)))))
		}
		const allowed = 0x1p-22 // frequencies are measured as well as a rounded cosine shows them
		if off, other := exact, rounded; a.exact && !(off < allowed && other > 10*off) || !a.exact && !(other < allowed && off > 10*other) {
			t.Errorf("%s: the new cosines are off by %.2g from those of exact angles, by %.2g from those of rounded ones", a.name, exact, rounded)
		}
	}
}

// A table that is not that of any frequency by more than rounding stays the model's own.
func TestTablesOfNoFrequency(t *testing.T) {
	testruntime.Require(t)
	for name, of := range map[string]func(position, pair int) float64{
		"a row like the one before": func(p, pair int) float64 {
			if p == 700 {
				p--
			}
			return float64(p) * frequency(pair)
		},
		"a pair that drifts": func(p, pair int) float64 { return float64(p) * frequency(pair) * (1 + 1e-9*float64(p*pair)) },
	} {
		t.Run(name, func(t *testing.T) {
			_, report := kit.Patch(t, retabled(t, "gathered", 1024, of), rewrite.Options{})
			if s := report.Sites[0]; !s.ScoresOnly || s.RotaryDim != 0 {
				t.Errorf("the op rotates %d channels", s.RotaryDim)
			}
		})
	}
}
