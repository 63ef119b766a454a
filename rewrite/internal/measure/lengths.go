package measure

import (
	"context"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/control"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
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
	for pt := range control.Calls(control.Width) {
		total := pt.Keys()
		if pt.B = total; dims[1] == dim.LengthExtent { // read as the length, which the graph does not tell from all tokens
			pt.L, pt.P = total, pt.L
		}
		if ev.Table.Within(pt) != pt {
			continue
		}
		if err := rowsCounted(ctx, loaded, s, mask, pt, total); err != nil {
			return err
		}
	}
	return nil
}

// rowsCounted checks a call whose rows have one token, two and so on.
func rowsCounted(ctx context.Context, loaded *eval.Loaded, s *site.Sized, mask *onnx.ValueInfo, pt dim.Point, total int64) error {
	values := make([]int64, pt.B*total)
	for b := range pt.B {
		copy(values[b*total:], slices.Repeat([]int64{1}, int(b+1)))
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
		if got != float64(b) {
			return graph.Refuse(s.Softmax, "the lengths that its cache is told (%q) do not count the tokens of %q: of %d tokens in %d places the last one is said to be token %g, expected %d",
				short.Name(last), short.Name(mask.Name), b+1, total, got+1, b+1)
		}
	}
	return nil
}
