package signature

import "slices"

// Call is what the inputs of one run are fed, besides its caches. Rows that
// hold fewer tokens than others are filled up with padding.
type Call struct {
	Batch, Length int64
	IDs           []int64 // [Batch, Length]
	Positions     []int64 // [Batch, Length], or [axes, Batch, Length] where a token has several that differ
	Mask          []int64 // [Batch, past + Length]
	Documents     []int64 // [Batch, past + Length]; nil puts every token into document 1
	Pasts         []int64 // [Batch], how many tokens a fixed cache holds; nil is the mask's width − Length
	Places        []int64 // [Batch] or [1], of the tokens whose logits are computed; nil is the last
}

// Feed returns the values of an input and their shape, nil for a number without dimensions; both are nil for a past
// input, which is fed with a cache.
func (c Call) Feed(in Input) (values, dims []int64) {
	total := int64(len(c.Mask)) / c.Batch
	each, seen := []int64{c.Batch, c.Length}, []int64{c.Batch, total}
	switch in.Role {
	case Tokens:
		return c.IDs, each
	case Positions:
		if in.Axes > 0 {
			given := int64(len(c.Positions)) / max(1, c.Batch*c.Length) // 1: text, whose positions are equal
			return slices.Repeat(c.Positions, int(in.Axes/max(1, given))), slices.Concat([]int64{in.Axes}, each)
		}
		return c.Positions, each
	case TokenTypes:
		return make([]int64, len(c.IDs)), each
	case Padding:
		return c.Mask, seen
	case Documents:
		if c.Documents == nil {
			return slices.Repeat([]int64{1}, len(c.Mask)), seen
		}
		return c.Documents, seen
	case CacheLength:
		if c.Pasts == nil {
			return slices.Repeat([]int64{total - c.Length}, int(c.Batch)), []int64{c.Batch}
		}
		return c.Pasts, []int64{c.Batch}
	case Branch:
		if total > c.Length {
			return []int64{1}, []int64{1}
		}
		return []int64{0}, []int64{1}
	case Passed:
		return []int64{0}, nil
	case Places:
		if c.Places == nil {
			return []int64{-1}, []int64{1}
		}
		return c.Places, []int64{int64(len(c.Places))}
	}
	return nil, nil
}
