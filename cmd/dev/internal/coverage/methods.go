package coverage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// methodTolerance is how far logits of a model patched with a method may be
// from transformers with it in float64, where an export of the model with the
// method is nearer than half.
const methodTolerance = 1e-4

// exact is how far an export may be from transformers in float64 for methods to
// be told apart from what it is off by itself: quantised ones and those of 16
// bits are farther.
const exact = 1e-3

// unwindowed marks, in methods.py's keys, a scaling of the layers without a
// window alone.
const unwindowed = " of full_attention"

// asked is what the command is asked for: without "@all" a scaling leaves layers
// with a window alone where others have none.
func asked(method string) string {
	if spec, ok := strings.CutSuffix(method, unwindowed); ok {
		return spec
	}
	return method + "@all"
}

// methods patches the export with every scaling that transformers computed for
// its architecture (methods.py), in one call and token by token. There is
// nothing to do where the file is missing, or of another model than plain's: an
// older transformers names weights in another order.
func (r *Result) methods(ctx context.Context, program, original, file string, plain truth) error {
	if r.Noise > exact {
		return nil
	}
	f, err := npz.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	same, err := truthOf(f, "")
	if err != nil {
		return err
	}
	if !same.agrees(plain, 0) {
		return nil
	}
	padded := same.agrees(plain, 1)
	eng, err := engine.NewWorker(engine.Config{Threads: 1}, program)
	if err != nil {
		return err
	}
	defer eng.Close()
	r.Methods = map[string]float64{}
	for _, key := range f.Keys() {
		method, ok := strings.CutPrefix(key, "logits ")
		if !ok {
			continue
		}
		t, err := truthOf(f, " "+method)
		if err != nil {
			return err
		}
		off, err := distanceWith(ctx, eng, program, original, asked(method), t, padded)
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		r.Methods[asked(method)] = off
		own := []float32{0}
		if key := "exported " + method; slices.Contains(f.Keys(), key) {
			if own, _, err = f.Float32(key); err != nil {
				return err
			}
		}
		if bound := max(methodTolerance, 2*float64(own[0])); !(off <= bound) {
			r.Wrong = fmt.Sprintf("%s: off by %.2g, %.2g is allowed", method, off, bound)
		}
	}
	return nil
}

// agrees reports whether two truths have the same logits for tokens that are not padding. i is 0
// without padding, 1 with it: an export without positions as input gives padded rows other ones
// than transformers had for the methods, which shows where channels have weights behind the rotation.
func (t truth) agrees(other truth, i int) bool {
	a, b := t[i].logits, other[i].logits
	if len(a) != len(b) {
		return false
	}
	mask := t[i].sequence.Mask
	width := len(a) / len(mask)
	for k, x := range a {
		if mask[k/width] != 0 && !(math.Abs(float64(x-b[k])) <= methodTolerance) {
			return false
		}
	}
	return true
}

// distanceWith is how far the model patched with a scaling is from the truth, with padding too
// where padded says so.
func distanceWith(ctx context.Context, eng engine.Engine, program, original, method string, t truth, padded bool) (float64, error) {
	text, all := strings.CutSuffix(method, "@all")
	edit, err := rope.ParseSpec(rope.ScalingAxis, text)
	if err != nil {
		return 0, err
	}
	opts := rewrite.Options{Evaluation: rewrite.Evaluation{Worker: []string{program}}, Edits: []rope.Spec{edit}}
	if all {
		opts.Edits, opts.LayerEdits = nil, []rewrite.LayerEdit{rewrite.AllLayers(edit)}
	}
	m, err := onnx.Open(original)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	if _, err := rewrite.Rewrite(ctx, m, opts); err != nil {
		return 0, err
	}
	path, remove, err := save(m)
	if err != nil {
		return 0, err
	}
	defer remove()
	d, err := decoder.Open(ctx, eng, path, decoder.Options{})
	if err != nil {
		return 0, err
	}
	defer d.Close()
	farthest := 0.0
	for i := range t {
		if i == 1 && (d.LengthTracked || !padded) {
			continue // a cache that tracks the length of each row takes padding on the right only
		}
		for _, lengths := range ways(d) {
			for _, s := range batches(t[i].sequence) {
				got, err := d.Chunks(ctx, s.Sequence, cut(lengths, s.Length)...)
				if err != nil {
					if s.Batch > 1 {
						continue // an export for one row
					}
					return 0, err
				}
				off, _, _, _ := distances(s, t[i].logits, got, got)
				farthest = larger(farthest, off)
			}
		}
	}
	if math.IsNaN(farthest) {
		return 0, errors.New("it gives NaN")
	}
	return farthest, nil
}

// methodGrid is how far patched models are from transformers with each
// method: the farthest of an architecture's exports.
func methodGrid(results map[string]Result) grid {
	type cell struct {
		off     float64
		exports int
	}
	rows, columns := map[string]map[string]cell{}, map[string]bool{}
	for _, r := range results {
		for method, off := range r.Methods {
			if rows[r.Architecture] == nil {
				rows[r.Architecture] = map[string]cell{}
			}
			c := rows[r.Architecture][method]
			rows[r.Architecture][method], columns[method] = cell{max(c.off, off), c.exports + 1}, true
		}
	}
	methods := slices.Sorted(maps.Keys(columns))
	g := grid{Heads: methods}
	for _, architecture := range slices.Sorted(maps.Keys(rows)) {
		cells := []string{architecture}
		for _, method := range methods {
			if c, ok := rows[architecture][method]; ok {
				cells = append(cells, fmt.Sprintf("%.1e (%d)", c.off, c.exports))
			} else {
				cells = append(cells, "·")
			}
		}
		g.Rows = append(g.Rows, cells)
	}
	return g
}
