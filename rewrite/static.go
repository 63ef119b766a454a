package rewrite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// A model may be exported for one batch, one length or one past. Such a size is
// a number like any other in its graph, so that nothing shows by changing which
// dimension is what. The declared shapes of its inputs tell the number; where it
// stands in a value follows from what the value is to the site: scores are
// [batch, heads, length, past + length], operands have the rows that their
// product needs. What cannot be told apart at one size (windows longer than the
// length, positions behind it) is the same for all that the model can be given.

// fix finds the sizes that the graph's inputs always have, and reads their
// dimensions by them.
func (t *shapeTable) fix(g *graph) {
	free := map[axis]bool{}
	var batches, lengths, pasts []int64 // what may be these
	for _, v := range g.model.Graph.Inputs {
		dims, ok := t.inputs[v.Name]
		if !ok {
			continue
		}
		for _, e := range dims {
			free[batchAxis] = free[batchAxis] || e.B != 0
			free[rowAxis] = free[rowAxis] || e.L != 0
		}
		state := isFloat(v.Type)
		if len(dims) > 1 && dims[0].constant() && (!state || len(dims) == 4) {
			batches = append(batches, dims[0].One)
		}
		if !state && len(dims) > 0 && len(dims) < 3 && dims[len(dims)-1].constant() {
			lengths = append(lengths, dims[len(dims)-1].One)
		}
		if state && len(dims) == 4 && dims[2].constant() {
			pasts = append(pasts, dims[2].One)
		}
	}
	t.fixed = point{}
	if len(batches) > 0 && !free[batchAxis] {
		t.fixed.B = slices.Max(batches)
	}
	if len(lengths) > 0 && !free[rowAxis] {
		t.fixed.L = slices.Min(lengths)
	}
	if len(pasts) > 0 && !t.past && t.fixed.L > 0 {
		t.fixed.P, t.past = slices.Max(pasts), true
	}
	if t.fixed == (point{}) {
		return
	}
	for _, v := range g.model.Graph.Inputs {
		dims, ok := t.inputs[v.Name]
		if !ok {
			continue
		}
		switch state := isFloat(v.Type); {
		case state && len(dims) == 4:
			t.inputs[v.Name] = t.reading(dims, 2, pastExtent)
		case !state && len(dims) > 0 && len(dims) < 3:
			last := len(dims) - 1
			read := t.reading(dims, last, lengthExtent)
			if read[last] != lengthExtent {
				read = t.reading(dims, last, totalExtent)
			}
			t.inputs[v.Name] = read
		default:
			t.inputs[v.Name] = t.reading(dims, -1, extent{})
		}
	}
}

// reading returns dims with the batch in place of its number, and rows in that
// of dimension at, where they have the numbers that these must have.
func (t *shapeTable) reading(dims []extent, at int, rows extent) []extent {
	out := slices.Clone(dims)
	first := 0 // where the batch stands: in front, or behind the rows
	if len(out) > 1 && (at == 0 || !out[0].constant()) {
		first = 1
	}
	if b := t.fixed.B; b > 0 && len(out) > 1 && out[first].constant() && at != first && out[first].One%b == 0 {
		if out[first].One == b || len(out) == 3 {
			out[first] = extent{B: out[first].One / b}
		}
	}
	for _, more := range []int64{0, 1} { // a sink stands behind the keys
		want := rows
		want.One += more
		if at >= 0 && at < len(out) && out[at] == t.settled(want) {
			out[at] = want
		}
	}
	return out
}

// settled returns an extent with numbers in place of the sizes that are fixed.
func (t *shapeTable) settled(e extent) extent {
	f := t.fixed
	if f.B > 0 {
		e.One, e.L, e.P, e.B, e.BL, e.BP = e.One+e.B*f.B, e.L+e.BL*f.B, e.P+e.BP*f.B, 0, 0, 0
	}
	if f.L > 0 {
		e.One, e.B, e.L, e.BL = e.One+e.L*f.L, e.B+e.BL*f.L, 0, 0
	}
	if f.P > 0 {
		e.One, e.B, e.P, e.BP = e.One+e.P*f.P, e.B+e.BP*f.P, 0, 0
	}
	return e
}

// settledAll does so with every dimension.
func (t *shapeTable) settledAll(dims []extent) []extent {
	out := make([]extent, len(dims))
	for i, e := range dims {
		out[i] = t.settled(e)
	}
	return out
}

// at returns the sizes that the model has when it is asked for others.
func (t *shapeTable) at(pt point) point { return t.fixed.over(pt) }

// over returns pt with the sizes of f that are fixed in place of its own.
func (f point) over(pt point) point {
	for _, s := range []struct {
		fixed int64
		size  *int64
	}{{f.B, &pt.B}, {f.L, &pt.L}, {f.P, &pt.P}} {
		if s.fixed > 0 {
			*s.size = s.fixed
		}
	}
	return pt
}

// within returns sizes that the model can be asked for, close to the given ones:
// fewer tokens are a part of as many as it takes, any batch is made of those that
// it takes. Without a cache length and past are tokens of one call.
func (t *shapeTable) within(pt point) point {
	f := t.fixed
	switch {
	case f.L == 0:
	case t.past:
		pt.L = min(pt.L, f.L)
	default:
		pt.L = min(pt.L, f.L)
		pt.P = min(pt.P, f.L-pt.L)
	}
	if f.P > 0 {
		pt.P = min(pt.P, f.P)
	}
	return pt
}

// counted makes of a call of a counted cache one of the sizes that are fixed.
func (p point) counted(length int64, tokens []int64) (int64, []int64) {
	if p.B > 0 {
		for int64(len(tokens)) < p.B {
			tokens = append(tokens, tokens[0])
		}
		tokens = tokens[:p.B]
	}
	if p.L > 0 {
		length = p.L
		tokens[0] = max(tokens[0], length)
		if length > 1 && len(tokens) > 1 { // such a call is a first one
			for i := range tokens {
				tokens[i] = min(tokens[i], length)
			}
		}
	}
	return length, tokens
}

// rowsAt returns which dimension of a query, key or value holds its tokens:
// [batch, heads, length, channels] before [batch, length, …].
func (t *shapeTable) rowsAt(dims []extent) int {
	want := t.settled(lengthExtent)
	if len(dims) == 4 && dims[2] == want {
		return 2
	}
	for i := 1; i < len(dims); i++ {
		if dims[i] == want {
			return i
		}
	}
	if len(dims) > 0 && dims[0] == want {
		return 0
	}
	return len(dims)
}

// sizesSentence says for which sizes alone the model was exported, "" when for any.
func (t *shapeTable) sizesSentence() string {
	f := t.fixed
	var list []string
	for _, s := range []struct {
		fixed int64
		name  string
	}{{f.B, "batch"}, {f.L, "length"}, {f.P, "past"}} {
		if s.fixed > 0 {
			list = append(list, fmt.Sprintf("%s %d", s.name, s.fixed))
		}
	}
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprintf("the model was exported for %s alone; it was measured and proven for that", joined(list))
}

// joined lists words as a sentence does.
func joined(list []string) string {
	last := len(list) - 1
	if last < 1 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:last], ", ") + " and " + list[last]
}

// dimsOf returns how the dimensions of something that a piece is fed or gives
// follow from the sizes asked for; nil where they do not.
func (l *loaded) dimsOf(value string) []extent {
	if dims, ok := l.piece.dims[value]; ok {
		return dims
	}
	if dims, ok := l.table.dims[value]; ok {
		return dims
	}
	if slices.ContainsFunc(l.piece.inputs, func(v *onnx.ValueInfo) bool { return v.Name == value }) {
		return l.table.inputs[value]
	}
	return nil
}

// atFixed makes of trials those at the sizes that the model has, one of each kind
// of padding, position and magnitude.
func (l *lifted) atFixed(list []trial) (out []trial) {
	for _, t := range list {
		if !l.layouts.cached {
			t.pt.L, t.pt.P = t.pt.L+t.pt.P, 0
		}
		t.pt = l.fixed.over(t.pt)
		if l.position == nil {
			t.positions = 0 // places of their own
		}
		if t.more = 2; l.fixed.L > 0 && (l.fixed.P > 0 || !l.layouts.cached) {
			t.more = 4 // the fewer sizes there are to try, the more numbers
		}
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// perToken reports whether a constant may hold something for each token of a model
// of fixed length: cosines and sines that a simplifier has computed.
func (g *graph) perToken(value string) bool {
	if value == "" || g.classes[value] != constantClass {
		return false
	}
	length := g.fixedLength()
	if length == 0 {
		return false
	}
	for standard(g.producer[value], "Cast", "Identity", "Unsqueeze", "Squeeze") && g.constants[value] == nil {
		value = g.producer[value].Inputs[0]
	}
	dims, known := g.fixedDims[value]
	return !known || slices.Contains(dims, length) && g.weight(value)
}

// fixedLength returns the number of tokens that the declared shapes of the graph's
// inputs ask for, 0 where they ask for none.
func (g *graph) fixedLength() (length int64) {
	for _, v := range g.model.Graph.Inputs {
		if g.inputs[v.Name] == nil || isFloat(v.Type) || len(v.Shape) == 0 || len(v.Shape) > 2 {
			continue
		}
		if last := v.Shape[len(v.Shape)-1]; last.Known() && (length == 0 || last.Value < length) {
			length = last.Value
		}
	}
	return length
}
