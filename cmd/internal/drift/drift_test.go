package drift_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/drift"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

func TestMain(m *testing.M) {
	rewrite.ServeIfWorker()
	testruntime.Examples()
	os.Exit(m.Run())
}

// golden is what testdata/make_drift.py wrote.
type golden struct {
	Heads   int       `json:"heads"`
	KVHeads int       `json:"kv_heads"`
	Length  int       `json:"length"`
	Size    int       `json:"size"`
	InvFreq []float64 `json:"inv_freq"`
	Query   []float64 `json:"query"`
	Key     []float64 `json:"key"`
	Cases   []struct {
		Window     int64            `json:"window"`
		Arithmetic drift.Arithmetic `json:"arithmetic"`
		Shift      int64            `json:"shift"`
		Weights    float64          `json:"weights"`
		FirstKey   float64          `json:"first_key"`
	} `json:"cases"`
}

func read(t *testing.T) (g golden) {
	t.Helper()
	data, err := os.ReadFile("testdata/drift.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g golden) problem(window int64) ref.Problem {
	p := ref.Problem{
		Attention: rope.Attention{
			Heads: g.Heads, KVHeads: g.KVHeads, HeadSize: g.Size,
			Encoding: rope.Encoding{Frequencies: g.InvFreq}, Mask: rope.Mask{Causal: true, Window: window},
		},
		Batch: 1, Length: g.Length, Query: g.Query, Key: g.Key,
	}
	for i := range g.Length {
		p.Positions = append(p.Positions, int64(i))
	}
	return p
}

func TestAgainstNumPy(t *testing.T) {
	g := read(t)
	for _, c := range g.Cases {
		p := g.problem(c.Window)
		d, err := drift.Compare(p, drift.Turn(p, c.Arithmetic, 0), drift.Turn(p, c.Arithmetic, c.Shift))
		if err != nil {
			t.Fatal(err)
		}
		if c.Arithmetic == drift.Float64 {
			if d.Weights > 1e-11 || d.FirstKey > 1e-11 {
				t.Errorf("float64, shift %d: %v, want what rounding leaves, below 1e-11", c.Shift, d)
			}
			continue
		}
		// A sine that differs in its last place may round one number otherwise.
		if !near(d.Weights, c.Weights) || !near(d.FirstKey, c.FirstKey) {
			t.Errorf("window %d, %s, shift %d: %v, NumPy has %g and %g", c.Window, c.Arithmetic, c.Shift, d, c.Weights, c.FirstKey)
		}
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-3*b }

func TestNoShiftNoDrift(t *testing.T) {
	p := read(t).problem(0)
	for _, a := range drift.Arithmetics() {
		d, err := drift.Compare(p, drift.Turn(p, a, 0), drift.Turn(p, a, 0))
		if err != nil || d != (drift.Drift{}) {
			t.Errorf("%s: %v, %v; want none", a, d, err)
		}
	}
}

// An absolute position that is added to query and key is no matter of distances. It drifts
// in float64 as well.
func TestAbsolutePositionsDrift(t *testing.T) {
	p := read(t).problem(0)
	at := func(shift int64) drift.Turned {
		q := p
		q.Query, q.Key = added(p, p.Query, shift), added(p, p.Key, shift)
		return drift.Turn(q, drift.Float64, shift)
	}
	d, err := drift.Compare(p, at(0), at(16))
	if err != nil {
		t.Fatal(err)
	}
	if d.Weights < 0.1 || d.FirstKey < 0.1 {
		t.Errorf("%v: an absolute position was not seen", d)
	}
}

// added adds sin(position/10) to every channel of [heads, length, size].
func added(p ref.Problem, x []float64, shift int64) []float64 {
	out := make([]float64, len(x))
	for i := range x {
		position := p.Positions[i/p.Attention.HeadSize%p.Length] + shift
		out[i] = x[i] + math.Sin(float64(position)/10)
	}
	return out
}

// On a model: 16 bits drift more than float32, precision exact takes it from a prompt, and
// only a cache of un-rotated keys from the next token.
func TestModel(t *testing.T) {
	runtime, library := testruntime.Paths(t)
	r, err := drift.Run(context.Background(), "../../../testdata/models/llama__optimum/model.onnx", drift.Options{
		Rewrite: rewrite.Options{Evaluation: rewrite.Evaluation{Runtime: runtime, Library: library, Worker: []string{os.Args[0]}}},
		Tokens:  []int64{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8}, Shifts: []int64{0, 16}})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Layers) != 2 || len(r.Left) != 0 {
		t.Errorf("layers %v, left out %v; want two and none", r.Layers, r.Left)
	}
	rows := map[drift.Arithmetic]drift.Drift{}
	for _, row := range r.Rows {
		if row.Shift == 0 && (row.Drift != drift.Drift{} || row.Control != drift.Drift{}) {
			t.Errorf("%s drifts without a shift: %v", row.Arithmetic, row)
		}
		rows[row.Arithmetic] = row.Drift // of the last shift
	}
	if !(rows[drift.Float32].Weights < rows[drift.Split].Weights && rows[drift.Split].Weights < rows[drift.Float16].Weights && rows[drift.Float16].Weights < rows[drift.BFloat16].Weights) {
		t.Errorf("%v: float32, split, float16 and bfloat16 should rise in this order", rows)
	}
	op := map[string]drift.OpDrift{}
	for _, o := range r.Op {
		if o.Shift == 0 && o.Prompt+o.Next != 0 {
			t.Errorf("the op drifts without a shift: %v", o)
		}
		op[o.Type+" "+o.Precision+" "+o.Cache] = o
	}
	for _, element := range []string{"bfloat16", "float16"} {
		exact, fast, raw := op[element+" exact rotated"], op[element+" fast rotated"], op[element+" exact raw"]
		if !(exact.Prompt < fast.Prompt/100 && exact.Next > fast.Next/100 && raw.Next < exact.Next/100) {
			t.Errorf("%s: exact %v, fast %v, raw %v", element, exact, fast, raw)
		}
	}
	// In float32 it is a matter of the CPU whether fast rounds a prompt; a single token it leaves.
	exact, fast := op["float32 exact rotated"], op["float32 fast rotated"]
	if !(fast.Prompt == exact.Prompt || exact.Prompt < fast.Prompt/100) || fast.Next != exact.Next || fast.Next == 0 {
		t.Errorf("float32: exact %v, fast %v", exact, fast)
	}
	if !strings.Contains(r.Advice, "--cache raw") {
		t.Errorf("the advice %q does not name the raw cache", r.Advice)
	}
}

// What is not measured is refused with the reason.
func TestUnfit(t *testing.T) {
	for want, change := range map[string]func(*ref.Problem){
		"one row":         func(p *ref.Problem) { p.Past = 1 },
		"position map":    func(p *ref.Problem) { p.Attention.Bands = make([]rope.Band, 2) },
		"mask":            func(p *ref.Problem) { p.Attention.Mask.Bias = true },
		"does not rotate": func(p *ref.Problem) { p.Attention.Encoding.Frequencies = nil },
	} {
		p := read(t).problem(0)
		if reason := drift.Unfit(p); reason != "" {
			t.Errorf("the plain problem: %s", reason)
		}
		change(&p)
		if reason := drift.Unfit(p); !strings.Contains(reason, want) {
			t.Errorf("got %q, want a reason with %q", reason, want)
		}
	}
}
