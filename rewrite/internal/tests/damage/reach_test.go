package damage_test

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/prove"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// TestProofRefusesDynamicNTK spoils an attention whose frequencies are computed anew in each
// call: in the op alone, and in what the proof believes of it too. Both must be seen.
func TestProofRefusesDynamicNTK(t *testing.T) {
	t.Parallel()
	m, err := onnx.Open(filepath.Join(kit.Testdata, "coverage", "llama_dynamic__dynamo18", "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	site := measureModel(t, m, 0)
	whole := func(a rope.Attention) error {
		believed := *site.measured
		believed.Attention = a
		_, err := prove.Site(context.Background(), site.evaluator, site.site, &believed)
		return err
	}
	if err := whole(site.measured.Attention); err != nil {
		t.Fatalf("the undamaged site is refused: %v", err)
	}
	for what, damage := range testsample.OfMap(t, map[string]func(*rope.Attention){
		"the factor by 1e-5":              func(a *rope.Attention) { a.Encoding.LengthDependent.NTK = float64(float32(4.00004)) },
		"one token later":                 func(a *rope.Attention) { a.Encoding.LengthDependent.Trained++ },
		"frequencies for every length":    func(a *rope.Attention) { a.Encoding.LengthDependent = rope.LengthDependent{} },
		"linear in place of a base":       func(a *rope.Attention) { a.Encoding.LengthDependent = rope.LengthDependent{Trained: 16, Linear: true} },
		"those of the longest call":       longestCall,
		"another base":                    anotherBase,
		"gain by 0.1 %":                   func(a *rope.Attention) { a.Encoding.Gain = 1.001 },
		"scale by 1 %":                    func(a *rope.Attention) { a.Scale *= 1.01 },
		"a window of 200":                 func(a *rope.Attention) { a.Mask.Window = 200 },
		"pairs of neighbours, not halves": func(a *rope.Attention) { a.Encoding.Layout = rope.Interleaved },
	}, 4) {
		t.Run(what, func(t *testing.T) {
			a := site.measured.Attention.Clone()
			damage(&a)
			refused(t, site.prove(a, nil))
			refused(t, whole(a))
		})
	}
}

// anotherBase takes the powers of 10,001 in place of 10,000.
func anotherBase(a *rope.Attention) {
	for i := range a.Encoding.Frequencies {
		a.Encoding.Frequencies[i] = float64(float32(math.Pow(10_001, -float64(i)/float64(len(a.Encoding.Frequencies)))))
	}
}

// longestCall takes two lists of frequencies, of which the second is that of the longest call in
// a proof.
func longestCall(a *rope.Attention) {
	a.Encoding.LengthDependent = rope.LengthDependent{Trained: 16, Long: a.Encoding.At(100_001).Frequencies}
}
