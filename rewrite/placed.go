package rewrite

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// How a model that turns nothing tells positions apart: tables that are added
// to its embeddings, and biases on its scores. Both are for a sentence only;
// what cannot be measured is left out of it.

// placed says how positions come into a model with these attentions. Without an
// engine nothing is evaluated for it.
func (g *graph) placed(ctx context.Context, eng engine.Engine, u *unturned) string {
	found := g.addedTables(ctx, eng, u.from)
	if eng != nil && len(u.cores) > 0 {
		found = append(found, g.biases(ctx, eng, u.cores)...)
	}
	if found = unique(found); len(found) == 0 {
		return "and nothing else was found that tells positions apart"
	}
	return "its positions are " + strings.Join(found, ", and ")
}

// positionRows is what a table of positions has at least; one with fewer rows,
// looked up by an input, tells kinds of tokens or pairs of sentences apart.
const positionRows = 16

// addedTables looks for tables that are added to the hidden states that values
// are made of, by what looks them up.
func (g *graph) addedTables(ctx context.Context, eng engine.Engine, from []string) (found []string) {
	type table struct {
		tensor *onnx.Tensor
		given  bool // looked up by a graph input as it is
	}
	var tables []table
	computed := false
	matrix := func(v string) *onnx.Tensor {
		t := g.constants[v]
		if t == nil || !isFloat(t.Type) && t.Type != onnx.Int8 && t.Type != onnx.Uint8 { // bytes of a quantised table
			return nil
		}
		wide := 0
		for _, d := range t.Dims {
			if d > 1 {
				wide++
			}
		}
		if wide != 2 {
			return nil
		}
		return t
	}
	g.upstream(from, func(v string, n *onnx.Node) []string {
		if n == nil {
			return nil
		}
		var t *onnx.Tensor
		given := false
		switch {
		case standard(n, "Gather") && g.classes[n.Inputs[0]] == constantClass && n.Int("axis", 0) == 0:
			if given = g.given(n.Inputs[1]); given || g.advances(ctx, eng, n.Inputs[1]) {
				t = matrix(n.Inputs[0])
			}
		case standard(n, "Slice") && g.classes[v] > constantClass:
			t = matrix(n.Inputs[0])
		case standard(n, "Add", "Sum"):
			for _, in := range n.Inputs {
				if m := matrix(in); m != nil {
					t = m
				}
			}
		case n.Domain == "com.microsoft" && n.OpType == "EmbedLayerNormalization" && len(n.Inputs) > 3:
			t = matrix(n.Inputs[3])
		case standard(n, "Sin", "Cos"):
			computed = true
		}
		if t != nil {
			tables = append(tables, table{t, given})
		}
		return reads(n)
	})
	// Of the tables that inputs look up, the one with the most rows holds the tokens.
	tokens := -1
	for i, t := range tables {
		if t.given && (tokens < 0 || rowsOf(t.tensor) > rowsOf(tables[tokens].tensor)) {
			tokens = i
		}
	}
	for i, t := range tables {
		rows := rowsOf(t.tensor)
		if i == tokens || t.given && rows < positionRows {
			continue
		}
		kind := "learned"
		if sinusoidal(t.tensor) {
			kind = "sinusoidal"
		}
		found = append(found, fmt.Sprintf("%s (a table of %d rows that is added to hidden states)", kind, rows))
	}
	if computed && len(found) == 0 {
		found = append(found, "sinusoidal (computed and added to hidden states)")
	}
	return found
}

func rowsOf(t *onnx.Tensor) int64 {
	for _, d := range t.Dims {
		if d > 1 {
			return d
		}
	}
	return 1
}

// given reports whether a value is a graph input, at most in another shape or type.
func (g *graph) given(v string) bool {
	for {
		n := g.producer[v]
		if n == nil {
			return g.inputs[v] != nil
		}
		if !standard(n, "Cast", "Identity", "Reshape", "Unsqueeze", "Squeeze") {
			return false
		}
		v = n.Inputs[0]
	}
}

// advances reports whether what looks up a table differs from token to token
// when all inputs are ones; a value that cannot be evaluated is taken to.
func (g *graph) advances(ctx context.Context, eng engine.Engine, index string) bool {
	if t := g.constants[index]; t != nil {
		ids, err := t.Int64s()
		return err == nil && len(ids) > 1 && slices.Min(ids) != slices.Max(ids)
	}
	if eng == nil || ctx.Err() != nil {
		return true
	}
	table, err := measureShapes(ctx, eng, g, []string{index})
	if err != nil {
		return true
	}
	l := &lifter{graph: g, loader: loader{engine: eng, table: table}}
	loaded, err := l.loadFlat(ctx, []string{index})
	if err != nil {
		return true
	}
	defer loaded.session.Close()
	out, err := loaded.run(ctx, table.within(point{B: 1, L: 7}), nil)
	if err != nil {
		return true
	}
	values := out[index+flatSuffix].Values()
	return len(values) > 1 && slices.Min(values) != slices.Max(values)
}

// sinusoidal reports whether every column of a table swings as a sine does:
// x(p+1) + x(p−1) = 2·cos ω·x(p), with one ω for the column.
func sinusoidal(t *onnx.Tensor) bool {
	values, err := t.Float64s()
	rows := int(rowsOf(t))
	if err != nil || rows < 8 || len(values)%rows != 0 {
		return false
	}
	columns := len(values) / rows
	swings := false
	for c := range columns {
		at := func(p int) float64 { return values[p*columns+c] }
		var dot, norm, size float64
		for p := 1; p+1 < rows; p++ {
			dot += at(p) * (at(p+1) + at(p-1))
			norm += at(p) * at(p)
			size = max(size, math.Abs(at(p)))
		}
		if norm == 0 {
			continue
		}
		factor := dot / norm
		for p := 1; p+1 < rows; p++ {
			if math.Abs(at(p+1)+at(p-1)-factor*at(p)) > 1e-3*size {
				return false
			}
		}
		swings = swings || math.Abs(at(0)-at(rows-1)) > 1e-6*size
	}
	return swings
}

// biases says what is added to the scores of the cores, each kind once.
func (g *graph) biases(ctx context.Context, eng engine.Engine, cores []core) (found []string) {
	var values []string
	for _, c := range cores {
		values = append(values, c.product.Outputs[0], c.softmax.Inputs[0])
	}
	table, err := measureShapes(ctx, eng, g, unique(values))
	if err != nil {
		return nil
	}
	l := &lifter{graph: g, loader: loader{engine: eng, table: table}}
	for _, c := range cores {
		if ctx.Err() != nil {
			return found
		}
		if what := l.bias(ctx, c); what != "" {
			found = append(found, what)
		}
	}
	return unique(found)
}

// bias evaluates what becomes of scores that are all zero, and names it; "" for
// a mere mask.
func (l *lifter) bias(ctx context.Context, c core) string {
	scores, result := c.product.Outputs[0], c.softmax.Inputs[0]
	dims := l.table.dims[scores]
	piece, refusal := l.open(ctx, c.softmax, "what is added to its scores", []string{result}, []string{scores})
	if dims == nil || refusal != nil {
		return ""
	}
	defer piece.session.Close()
	pt := l.table.within(point{B: 1, L: 24})
	sizes := evaluate(dims, pt)
	elements, err := room(sizes)
	if err != nil {
		return ""
	}
	out, err := piece.run(ctx, pt, map[string]engine.Tensor{scores: engine.Float32s(make([]float32, elements), sizes...)})
	if err != nil {
		return ""
	}
	y := out[result]
	if len(y.Dims) < 2 {
		return ""
	}
	total, length := y.Dims[len(y.Dims)-1], y.Dims[len(y.Dims)-2]
	return nameBias(y.Values(), length, total)
}

// nameBias names biases [heads][length][total] by how they depend on the
// distance between query and key, up to a constant per query, which a softmax
// does not see.
func nameBias(values []float64, length, total int64) string {
	flat, linear, toeplitz := true, true, true
	var slopes []float64
	for start := int64(0); start+length*total <= int64(len(values)); start += length * total {
		at := func(i, j int64) float64 { return values[start+i*total+j] }
		shift := total - length             // keys before the first query
		byDistance := map[int64]float64{}   // what a distance adds
		slope, seen := math.NaN(), int64(0) // of this head
		for i := range length {
			self := at(i, i+shift)
			for j := range total {
				b := at(i, j)
				if b < masked || self < masked {
					continue
				}
				seen++
				distance := i + shift - j
				tolerance := 1e-4 * (math.Abs(b) + math.Abs(self) + 1e-3)
				flat = flat && math.Abs(b-self) <= tolerance
				if distance == 0 {
					continue
				}
				per := (b - self) / float64(distance)
				if math.IsNaN(slope) {
					slope = per
				}
				linear = linear && math.Abs(per-slope)*math.Abs(float64(distance)) <= tolerance
				if other, ok := byDistance[distance]; ok {
					toeplitz = toeplitz && math.Abs(b-self-other) <= tolerance
				}
				byDistance[distance] = b - self
			}
		}
		if seen == 0 {
			return ""
		}
		if !math.IsNaN(slope) {
			slopes = append(slopes, -slope)
		}
	}
	switch {
	case flat:
		return ""
	case linear:
		return fmt.Sprintf("ALiBi (scores fall linearly with the distance, by %.3g to %.3g per token)", slices.Min(slopes), slices.Max(slopes))
	case toeplitz:
		return "relative biases on the scores, learned for ranges of distances as T5's buckets are"
	}
	return "biases on the scores of another kind"
}
