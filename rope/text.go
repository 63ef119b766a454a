package rope

import (
	"fmt"
	"slices"
	"strings"
)

// String says which keys a query sees: "causal + window 512 + padding".
func (m Mask) String() string {
	parts := []string{"bidirectional"}
	if m.Causal {
		parts[0] = "causal"
	}
	add := func(is bool, text string, args ...any) {
		if is {
			parts = append(parts, fmt.Sprintf(text, args...))
		}
	}
	add(m.Window > 0, "window %d", m.Window)
	add(m.FirstKeys > 0, "first %d keys", m.FirstKeys)
	add(m.Documents == IntraDocument, "own document")
	add(m.Documents == AnchorDocument, "own document and anchor")
	add(m.Restart, "positions from %d in each document", m.Start)
	add(m.Padding, "padding")
	add(m.Bias, "the model's own bias")
	return strings.Join(parts, " + ")
}

// DescribeAxes says which of a token's positions turn how many pairs: "3 positions for each
// token, which turn 16, 24 and 24 pairs in sections". It is empty if a token has one
// position.
func (e Encoding) DescribeAxes() string {
	if e.Axes == nil {
		return ""
	}
	counts := make([]int, slices.Max(e.Axes)+1)
	changes := 0
	for pair, axis := range e.Axes {
		counts[axis]++
		if pair > 0 && axis != e.Axes[pair-1] {
			changes++
		}
	}
	how := "in sections"
	if changes >= len(counts) {
		how = "interleaved"
	}
	list := make([]string, len(counts))
	for axis, n := range counts {
		list[axis] = fmt.Sprint(n)
	}
	last := len(list) - 1
	if last == 0 {
		return "pairs rotate by the first of several positions for each token"
	}
	return fmt.Sprintf("%d positions for each token, which rotate %s and %s pairs %s", len(counts), strings.Join(list[:last], ", "), list[last], how)
}

// DescribeFactors says which of query and key are multiplied by channel after the
// rotation; "" for none.
func (a Attention) DescribeFactors() string {
	var list []string
	if a.QueryFactors != nil {
		list = append(list, "query")
	}
	if a.KeyFactors != nil {
		list = append(list, "key")
	}
	if list == nil {
		return ""
	}
	return strings.Join(list, " and ") + " weighted by channel"
}

// DescribePositions describes the position map, with a part for each band except the
// first: "from distance 85 on the query at p − 53 and keys at p". It is empty
// without a position map.
func (a Attention) DescribePositions() (parts []string) {
	what := "distance"
	if a.Chunk > 0 {
		parts = append(parts, fmt.Sprintf("positions in chunks of %d", a.Chunk))
		what = "chunk distance"
	}
	for i, b := range a.Bands {
		if i > 0 {
			parts = append(parts, fmt.Sprintf("from %s %d on the query at %s and keys at %s", what, b.Start, b.query(), b.position(b.KeyScale)))
		}
	}
	return parts
}

// query is the position of the query in a band.
func (b Band) query() string {
	text := b.position(b.QueryScale)
	switch {
	case b.QueryScale == 0:
		text = fmt.Sprintf("%g", b.QueryOffset)
	case b.QueryOffset < 0:
		text += fmt.Sprintf(" − %g", -b.QueryOffset)
	case b.QueryOffset > 0:
		text += fmt.Sprintf(" + %g", b.QueryOffset)
	}
	if b.QueryLimit > 0 {
		text += fmt.Sprintf(" (at most %g)", b.QueryLimit)
	}
	return text
}

// position is the position p of a token, scaled.
func (b Band) position(scale float64) string {
	p := "p"
	if b.Group > 1 {
		p = fmt.Sprintf("⌊p/%d⌋", b.Group)
	}
	switch scale {
	case 0:
		return "0"
	case 1:
		return p
	}
	return fmt.Sprintf("%.6g·%s", scale, p)
}
