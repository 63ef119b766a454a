package dim

// SmallWidth is how many tokens, cached and new ones, the longest of the calls has that are tried without sampling.
const SmallWidth = 8

// SmallCalls yields every call of up to SmallWidth tokens, the shortest first: each number of cached and of new tokens.
// Their batch is left to the caller.
func SmallCalls(yield func(Point) bool) {
	for total := int64(1); total <= SmallWidth; total++ {
		for length := int64(1); length <= total; length++ {
			if !yield(Point{L: length, P: total - length}) {
				return
			}
		}
	}
}
