package rewrite

import (
	"context"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// unpack finds which heads of a value that holds several of query, key and
// value are those of each, by feeding one head at a time.
func (l *lifter) unpack(ctx context.Context, s *sizedSite, ly *layouts) error {
	holds := map[string]int{}
	for _, b := range []branch{s.query, s.key, s.value} {
		for _, cut := range b.cuts() {
			holds[cut]++
		}
	}
	for _, v := range []struct {
		what   string
		at     *onnx.Node
		branch branch
		in     *layout
		to     layout
	}{
		{"query", s.product, branch{cut: s.query.cut, beside: s.query.beside, scales: s.query.scales, operand: s.query.operand}, &ly.query, ly.queryOperand},
		{"key", s.product, branch{cut: s.key.cut, beside: s.key.beside, scales: s.key.scales, operand: s.key.stored()}, &ly.key, ly.keyStored},
		{"value", s.mix, branch{cut: s.value.cut, operand: s.value.stored()}, &ly.value, ly.valueStored},
	} {
		if v.in.parts != nil { // they are told apart by their channels
			for _, cut := range v.branch.cuts() {
				if holds[cut] > 1 {
					return refuse(v.at, "the value %q holds a part of its %s and others", cut, v.what)
				}
			}
			continue
		}
		if holds[v.branch.cut] == 1 {
			continue
		}
		if v.in.is(batchHeadAxis, rowAxis, channelAxis) {
			return refuse(v.at, "the value %q holds its %s and others, with one dimension for batch and heads; two were expected", v.branch.cut, v.what)
		}
		if width := saturated(v.in.heads, v.in.channels); width > maxWidth {
			return refuse(v.at, "the value %q that holds its %s is %d channels wide, more than the %d that are evaluated", v.branch.cut, v.what, width, maxWidth)
		}
		loaded, refusal := l.open(ctx, v.at, "the way of its "+v.what, []string{v.branch.operand}, v.branch.given())
		if refusal != nil {
			return refusal
		}
		from, err := headMap(ctx, loaded, v.branch, 0, *v.in, v.to)
		loaded.session.Close()
		if err != nil {
			return refuse(v.at, "the heads of its %s are not found in %q: %v", v.what, v.branch.cut, err)
		}
		first, count := from[0], from[len(from)-1]-from[0]+1
		for h, source := range from {
			if want := first + int64(h)*count/int64(len(from)); source != want {
				return refuse(v.at, "head %d of its %s is head %d of %q, %d was expected", h, v.what, source, v.branch.cut, want)
			}
		}
		v.in.all, v.in.first, v.in.heads = v.in.heads, first, count
	}
	return nil
}
