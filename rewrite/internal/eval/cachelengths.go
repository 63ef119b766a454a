package eval

// CacheLengths is what a call with a length-tracked cache is told of its tokens.
type CacheLengths struct {
	Tokens []int64 // number in each row of the batch, after the call
	Total  int64   // what the op is told as the length of the longest row
}

// Past returns how many tokens row b had before a call with length new ones.
func (c *CacheLengths) Past(b, length int64) int64 { return max(c.Tokens[b]-length, 0) }
