package prove

// slotRows returns the kind of row of each element of a cache of fixed size: rows
// behind a call's tokens are never used.
func (c *comparison) slotRows(result int, t trial) func(i int64) RowKind {
	channels := c.measured.Layouts.Key.Channels
	if result == presentValue {
		channels = c.measured.Layouts.Value.Channels
	}
	run := sizes(c.evaluator, t)
	return func(i int64) RowKind {
		if i/channels%(run.L+run.P) < t.tokens() {
			return Compared
		}
		return unused
	}
}
