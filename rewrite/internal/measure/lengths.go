package measure

import (
	"context"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/formula"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// lengthsCounted checks what the graph computes of its padding mask as the lengths of a length-tracked cache: the tokens of
// each row, in every call of few tokens with padding on the right. A row that is said to have fewer tokens than
// the caller gave has tokens that count as padding, for which the op gives zeros and originals give anything.
// Lengths that the caller gives, or that follow from something else, are as they are.
func lengthsCounted(ctx context.Context, ev *eval.Evaluator, s *site.Sized) error {
	last := s.LengthTracked.Last
	source := *ev // elsewhere they are fed
	source.Graph = ev.Graph.Source
	loaded, err := source.LoadFlat(ctx, []string{last})
	if err != nil {
		return bisect.OnlyEnded(err)
	}
	defer loaded.Session.Close()
	inputs := loaded.Piece.Inputs
	if len(loaded.Piece.Nodes) < 3 || len(inputs) != 1 { // two nodes only flatten it
		return nil
	}
	mask := inputs[0]
	dims := ev.Table.Inputs[mask.Name]
	if len(dims) != 2 || dims[0] != dim.BatchExtent || dims[1] != dim.TotalExtent && dims[1] != dim.LengthExtent {
		return nil
	}
	for pt := range dim.SmallCalls {
		total := pt.Keys()
		if pt.B = ev.Table.Static.B; pt.B == 0 {
			pt.B = total
		}
		if dims[1] == dim.LengthExtent { // read as the length, which the graph does not tell from all tokens
			pt.L, pt.P = total, pt.L
		}
		if ev.Table.Within(pt) != pt {
			continue
		}
		for tokens := range slices.Chunk(oneTo(total), int(pt.B)) {
			for int64(len(tokens)) < pt.B {
				tokens = append(tokens, total)
			}
			if err := rowsCounted(ctx, loaded, s, mask, pt, total, tokens); err != nil {
				return err
			}
		}
	}
	return nil
}

func oneTo(n int64) (list []int64) {
	for i := range n {
		list = append(list, i+1)
	}
	return list
}

// rowsCounted checks a call whose rows have so many tokens of total places, and padding after them.
func rowsCounted(ctx context.Context, loaded *eval.Loaded, s *site.Sized, mask *onnx.ValueInfo, pt dim.Point, total int64, tokens []int64) error {
	values := make([]int64, pt.B*total)
	for b, n := range tokens {
		copy(values[int64(b)*total:], slices.Repeat([]int64{1}, int(n)))
	}
	feed, err := engine.Integers(mask.Type, values, pt.B, total)
	if err != nil {
		return nil // flags are no lengths
	}
	results, err := loaded.Run(ctx, pt, map[string]engine.Tensor{mask.Name: feed})
	if err != nil {
		return bisect.OnlyEnded(err)
	}
	last := s.LengthTracked.Last
	for b, got := range results[last+eval.FlatSuffix].Values() {
		if want := tokens[b]; got != float64(want-1) {
			return graph.Refuse(s.Softmax, "the lengths that its cache is told (%q) do not count the tokens of %q: of %d tokens in %d places the last one is said to be token %g, expected %d",
				short.Name(last), short.Name(mask.Name), want, total, got+1, want)
		}
	}
	return nil
}

// lengthsFormula notes in e where the lengths that the graph makes of its padding mask may count otherwise in some call.
func lengthsFormula(ctx context.Context, ev *eval.Evaluator, s *site.Sized, e *provenance.Exact) error {
	if s.LengthTracked == nil || !e.AnyLength {
		return nil
	}
	last, source := s.LengthTracked.Last, *ev // elsewhere they are fed
	source.Graph = ev.Graph.Source
	p, err := eval.Extract(source.Graph, []string{last}, nil)
	if err == nil && len(p.Nodes) > 0 {
		mask := "" // its dimension may be read as the length, which the graph does not tell from all tokens
		if len(p.Inputs) == 1 {
			mask = p.Inputs[0].Name
		}
		err = formulaOf(ctx, &source, p, mask, func(r *formula.Reader) error { return r.Lengths(last) })
	}
	if err != nil {
		e.AnyLength, e.Tokens, e.Why = false, dim.SmallWidth, "lengths: "+err.Error()
	}
	return bisect.OnlyEnded(err)
}
