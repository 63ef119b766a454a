package measure

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bound"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// A model without rotation tells positions apart in other ways: by tables that are added
// to its embeddings, or by biases on its scores. They are looked for only to be named in
// a sentence of the report. What cannot be measured is left out.

// ExplainPositions says in words how a model with these attention layers distinguishes positions, and
// whether what is added to scores goes by the distance in few tokens. With a nil engine nothing is evaluated.
func ExplainPositions(ctx context.Context, g *graph.Graph, eng engine.Engine, nonRotary *site.NonRotary) (text string, byDistance bool) {
	found, rotatesBefore := positionTables(ctx, g, eng, nonRotary.From)
	if eng != nil && len(nonRotary.Cores) > 0 {
		var names []string
		names, byDistance = scoreBiases(ctx, g, eng, nonRotary.Cores)
		found = append(found, names...)
	}
	var sentences []string
	if found = ir.Unique(found); len(found) > 0 {
		sentences = append(sentences, "its positions are "+strings.Join(found, ", and "))
	}
	if rotatesBefore {
		sentences = append(sentences, "hidden states are multiplied by sines and cosines of their positions before query and key are projected (this looks like a rotation, but the op rotates after the projections)")
	}
	if len(sentences) == 0 {
		return "and no other encoding of positions was found", byDistance
	}
	return strings.Join(sentences, ", and "), byDistance
}

// positionRows is the least number of rows of a table of positions. One with fewer rows
// that is looked up by an input is for token types: the first sentence or the second.
const positionRows = 16

// positionTables names the tables of positions that are added to the hidden states from
// which the given values are computed. It also says whether these are multiplied by sines and cosines.
func positionTables(ctx context.Context, g *graph.Graph, eng engine.Engine, from []string) (found []string, multiplied bool) {
	type table struct {
		tensor *onnx.Tensor
		given  bool // looked up by a graph input itself
		meets  meeting
	}
	var tables []table
	var sinusoids meeting
	matrix := func(v string) *onnx.Tensor {
		t := g.Constants[v]
		if t == nil || !ir.IsFloat(t.Type) && t.Type != onnx.Int8 && t.Type != onnx.Uint8 { // bytes of a quantised table
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
	g.Upstream(from, func(v string, n *onnx.Node) []string {
		if n == nil {
			return nil
		}
		var t *onnx.Tensor
		given := false
		meets := func() meeting { return meetsHidden(g, v) }
		switch {
		case ir.Standard(n, "Gather") && g.Classes[n.Inputs[0]] == graph.ConstantClass && n.Int("axis", 0) == 0:
			if given = isGiven(g, n.Inputs[1]); given || advances(ctx, g, eng, n.Inputs[1]) {
				t = matrix(n.Inputs[0])
			}
		case ir.Standard(n, "Slice") && g.Classes[v] > graph.ConstantClass:
			t = matrix(n.Inputs[0])
		case ir.Standard(n, "Add", "Sum"):
			for _, in := range n.Inputs {
				if m := matrix(in); m != nil {
					t, meets = m, func() meeting { return meeting{added: true} }
				}
			}
		case n.Domain == "com.microsoft" && n.OpType == "EmbedLayerNormalization" && len(n.Inputs) > 3:
			t, meets = matrix(n.Inputs[3]), func() meeting { return meeting{added: true} }
		case ir.Standard(n, "Sin", "Cos") && !g.IsData(v):
			sinusoids = sinusoids.or(meets())
		}
		if t != nil {
			tables = append(tables, table{t, given, meets()})
		}
		return ir.Reads(n)
	})
	// Of the tables that inputs look up, the one with the most rows is that of the tokens.
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
		kind, how := "learned", ""
		if Sinusoidal(t.tensor) {
			kind = "sinusoidal"
		}
		switch {
		case t.meets.added:
			how = " that is added to hidden states"
		case t.meets.multiplied && kind == "sinusoidal":
			multiplied = true
			continue
		case t.meets.multiplied:
			how = " by which hidden states are multiplied"
		}
		found = append(found, fmt.Sprintf("%s (a table of %d rows%s)", kind, rows, how))
	}
	if sinusoids.added && len(found) == 0 {
		found = append(found, "sinusoidal (computed and added to hidden states)")
	}
	return found, multiplied || sinusoids.multiplied
}

// meeting says what becomes of hidden states where a value of positions meets them.
type meeting struct{ added, multiplied bool }

func (m meeting) or(other meeting) meeting {
	return meeting{m.added || other.added, m.multiplied || other.multiplied}
}

// meetsHidden follows a value of positions to where it meets hidden states.
func meetsHidden(g *graph.Graph, value string) (m meeting) {
	seen := map[string]bool{}
	for stack := []string{value}; len(stack) > 0; {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[v] {
			continue
		}
		seen[v] = true
		for _, n := range g.Consumers[v] {
			met := slices.ContainsFunc(n.Inputs, func(in string) bool { return in != v && !seen[in] && hidden(g, in) })
			switch {
			case !met:
				stack = append(stack, n.Outputs...)
			case ir.Standard(n, "Mul", "Div"):
				m.multiplied = true
			case ir.Standard(n, "Add", "Sub", "Sum"), n.Domain == "com.microsoft" && n.OpType == "SkipLayerNormalization":
				m.added = true
			}
		}
	}
	return m
}

// hidden reports whether a value is computed from hidden states or embeddings of tokens.
func hidden(g *graph.Graph, value string) (is bool) {
	if g.IsData(value) {
		return true
	}
	g.Upstream([]string{value}, func(v string, n *onnx.Node) []string {
		if is || n == nil || g.Classes[v] < graph.PositionClass || ir.Standard(n, "Sin", "Cos") {
			return nil
		}
		is = ir.Standard(n, "Gather") && g.Weight(n.Inputs[0]) && isGiven(g, n.Inputs[1])
		return ir.Reads(n)
	})
	return is
}

// rowsOf returns the first dimension above 1.
func rowsOf(t *onnx.Tensor) int64 {
	for _, d := range t.Dims {
		if d > 1 {
			return d
		}
	}
	return 1
}

// isGiven reports whether a value is a graph input, possibly in another shape or type.
func isGiven(g *graph.Graph, v string) bool {
	for {
		n := g.Producer[v]
		if n == nil {
			return g.Inputs[v] != nil
		}
		if !ir.Standard(n, "Cast", "Identity", "Reshape", "Unsqueeze", "Squeeze") {
			return false
		}
		v = n.Inputs[0]
	}
}

// advances reports whether the index into a table differs from token to token when all
// inputs are ones. It says yes where that cannot be evaluated.
func advances(ctx context.Context, g *graph.Graph, eng engine.Engine, index string) bool {
	if t := g.Constants[index]; t != nil {
		ids, err := t.Int64s()
		return err == nil && len(ids) > 1 && slices.Min(ids) != slices.Max(ids)
	}
	if eng == nil || ctx.Err() != nil {
		return true
	}
	table, err := eval.MeasureShapes(ctx, eng, g, []string{index})
	if err != nil {
		return true
	}
	ev := &eval.Evaluator{Graph: g, Loader: eval.Loader{Engine: eng, Table: table}}
	loaded, err := ev.LoadFlat(ctx, []string{index})
	if err != nil {
		return true
	}
	defer loaded.Session.Close()
	out, err := loaded.Run(ctx, table.Within(dim.Point{B: 1, L: 7}), nil)
	if err != nil {
		return true
	}
	values := out[index+eval.FlatSuffix].Values()
	return len(values) > 1 && slices.Min(values) != slices.Max(values)
}

// Sinusoidal reports whether every column of a table is a sine of the position p:
// x(p+1) + x(p−1) = 2·cos ω·x(p), with one ω for the column.
func Sinusoidal(t *onnx.Tensor) bool {
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

// scoreBiases names what is added to the scores of the cores, each kind once, and says whether any of it
// goes by the distance.
func scoreBiases(ctx context.Context, g *graph.Graph, eng engine.Engine, cores []site.Core) (found []string, byDistance bool) {
	var values []string
	for _, c := range cores {
		values = append(values, c.ScoresMatMul.Outputs[0], c.Softmax.Inputs[0])
	}
	table, err := eval.MeasureShapes(ctx, eng, g, ir.Unique(values))
	if err != nil {
		return nil, false
	}
	ev := &eval.Evaluator{Graph: g, Loader: eval.Loader{Engine: eng, Table: table}}
	for _, c := range cores {
		if ctx.Err() != nil {
			return found, byDistance
		}
		values, length, total := scoreBias(ctx, ev, c)
		if what := NameBias(values, length, total); what != "" {
			found = append(found, what)
			byDistance = byDistance || readBiases(values, length, total).toeplitz
		}
	}
	return ir.Unique(found), byDistance
}

// scoreBias evaluates what scores of zero become, [heads, length, total]; nil where it cannot.
func scoreBias(ctx context.Context, ev *eval.Evaluator, c site.Core) (values []float64, length, total int64) {
	scores, result := c.ScoresMatMul.Outputs[0], c.Softmax.Inputs[0]
	dims := ev.Table.Dims[scores]
	piece, refusal := ev.Open(ctx, c.Softmax, "what is added to its scores", []string{result}, []string{scores})
	if dims == nil || refusal != nil {
		return nil, 0, 0
	}
	defer piece.Session.Close()
	pt := ev.Table.Within(dim.Point{B: 1, L: 24})
	sizes := dim.Evaluate(dims, pt)
	elements, err := bound.Elements(sizes)
	if err != nil {
		return nil, 0, 0
	}
	out, err := piece.Run(ctx, pt, map[string]engine.Tensor{scores: engine.Float32s(make([]float32, elements), sizes...)})
	if err != nil {
		return nil, 0, 0
	}
	y := out[result]
	if len(y.Dims) < 2 {
		return nil, 0, 0
	}
	return y.Values(), y.Dims[len(y.Dims)-2], y.Dims[len(y.Dims)-1]
}
