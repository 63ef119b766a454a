package eval

// CacheLengths says how many tokens a call of a counted cache finds and leaves.
type CacheLengths struct {
	Tokens []int64 // in each row, after the call
	Total  int64   // what the op is told of the longest row
}

// Past returns the tokens in row b before a call with length new ones.
func (c *CacheLengths) Past(b, length int64) int64 { return max(c.Tokens[b]-length, 0) }
