package kit

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// MethodGoldens is testdata/goldens/methods.json, others.json or layers.json.
type MethodGoldens struct {
	Trained int64 `json:"trained"`
	Context int64 `json:"context"`
	Step    int   `json:"step"` // every so many tokens have logits

	RunPrefill int64 `json:"run_prefill"` // first call of what is decoded with length=run
	Cases      map[string]MethodCase
	Logits     *npz.File `json:"-"`
}

// MethodCase is one method, or several, and who says what it gives.
type MethodCase struct {
	Edits      []string        `json:"edits"`           // axis, spec and perhaps @layer
	Parameters json.RawMessage `json:"rope_parameters"` // for all layers, or by type
	Oracle     string          `json:"oracle"`
}

// ReadMethodGoldens reads those of testdata/goldens/NAME.json.
func ReadMethodGoldens(t *testing.T, name string) MethodGoldens {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(Testdata, "goldens", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var g MethodGoldens
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	if g.Logits, err = npz.Open(filepath.Join(Testdata, "goldens", name+".npz")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Logits.Close() })
	return g
}

// Edits reads "axis spec" texts.
func Edits(t *testing.T, texts []string) (list []rope.Spec) {
	t.Helper()
	for _, text := range texts {
		axis, s, _ := strings.Cut(text, " ")
		for _, x := range []rope.Axis{rope.ScalingAxis, rope.PositionsAxis, rope.MaskAxis} {
			if x.String() == axis {
				list = append(list, Spec(t, x, s))
			}
		}
	}
	return list
}

// Options are what the case asks for.
func (c MethodCase) Options(t *testing.T, g MethodGoldens) rewrite.Options {
	t.Helper()
	opts := rewrite.Options{Context: rope.Context{Length: g.Context, Original: g.Trained}}
	for _, text := range c.Edits {
		text, layer, single := strings.Cut(text, "@")
		s := Edits(t, []string{text})[0]
		if !single {
			opts.Edits = append(opts.Edits, s)
			continue
		}
		n, err := strconv.Atoi(layer)
		if err != nil {
			t.Fatal(err)
		}
		opts.LayerEdits = append(opts.LayerEdits, rewrite.LayerEdit{Spec: s, Where: "layer " + layer, Layers: func(i int) bool { return i == n }})
	}
	if c.Parameters != nil {
		byType, err := rope.ParseLayerRopeParameters(c.Parameters)
		if err != nil {
			t.Fatal(err)
		}
		for kind, s := range byType {
			if kind == "" {
				opts.Edits = append(opts.Edits, s)
				continue
			}
			opts.LayerEdits = append(opts.LayerEdits, rewrite.LayerEdit{Spec: s, Type: kind, Where: kind})
		}
	}
	if c.Documents() {
		opts.Documents.Input = rewrite.DocumentsInput
	}
	return opts
}

// Documents reports whether tokens carry document ids.
func (c MethodCase) Documents() bool {
	return slices.ContainsFunc(c.Edits, func(s string) bool { return strings.HasPrefix(s, "mask anchor") || strings.HasPrefix(s, "mask intra") })
}

// ThenDecode is a prefill and tokens one by one.
var ThenDecode = Ways["then decode"]

// Unregistered is an engine that registers no op library.
type Unregistered struct{ engine.Engine }

// Load loads a model as if the library were not there.
func (e Unregistered) Load(ctx context.Context, m engine.Model) (engine.Session, error) {
	m.Library = false
	return e.Engine.Load(ctx, m)
}

// SparseDistance compares every step-th token's logits: of all rows, or of the
// real tokens of the second where it is padded.
func SparseDistance(t *testing.T, g Golden, logits []float64, want []float32, step int) float64 {
	t.Helper()
	batch, length := int(g.Sequence.Batch), int(g.Sequence.Length)
	width := len(logits) / (batch * length)
	var picked []float64
	for b := range batch {
		first := 0
		for g.Sequence.Mask[b*length+first] == 0 {
			first++
		}
		if g.Padded && b == 0 {
			continue
		}
		for i := first; i < length; i += step {
			picked = append(picked, logits[(b*length+i)*width:][:width]...)
		}
	}
	if len(picked) != len(want) {
		t.Fatalf("%d logits, the golden has %d", len(picked), len(want))
	}
	worst := 0.0
	for i, x := range picked {
		worst = math.Max(worst, math.Abs(x-float64(want[i])))
	}
	return worst
}
