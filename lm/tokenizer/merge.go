package tokenizer

// symbol is a token of a piece while it is merged, with its neighbours.
type symbol struct {
	id         int32
	prev, next int32 // -1 at the ends
	gone       bool  // it has become part of the one before it
}

// candidate is a pair that can be merged.
type candidate struct {
	merged
	at int32 // the left symbol
}

func (s *scratch) add(id int64) {
	n := int32(len(s.symbols))
	if n > 0 {
		s.symbols[n-1].next = n
	}
	s.symbols = append(s.symbols, symbol{id: int32(id), prev: n - 1, next: -1})
}

// merge joins pairs, those of the lowest rank first and of these the leftmost. A
// queue keeps it at n log n steps for n letters, as a piece can be a whole text.
func (m *bpe) merge(s *scratch) {
	s.queue = s.queue[:0]
	for at := range s.symbols {
		m.consider(s, int32(at))
	}
	for len(s.queue) > 0 {
		top := s.queue.pop()
		left := &s.symbols[top.at]
		if left.gone || left.next < 0 {
			continue
		}
		right := &s.symbols[left.next]
		if now, ok := m.merges[pairKey{left.id, right.id}]; !ok || now.id != top.id {
			continue // one of the two has been merged meanwhile
		}
		left.id, left.next, right.gone = top.id, right.next, true
		if right.next >= 0 {
			s.symbols[right.next].prev = top.at
		}
		if left.prev >= 0 {
			m.consider(s, left.prev)
		}
		m.consider(s, top.at)
	}
}

// consider queues a symbol and its right neighbour if they can be merged.
func (m *bpe) consider(s *scratch, at int32) {
	left := s.symbols[at]
	if left.next < 0 {
		return
	}
	if to, ok := m.merges[pairKey{left.id, s.symbols[left.next].id}]; ok {
		s.queue.push(candidate{to, at})
	}
}

// mergeQueue is a binary heap. That of container/heap boxes every element.
type mergeQueue []candidate

func (c candidate) before(other candidate) bool {
	return c.rank < other.rank || c.rank == other.rank && c.at < other.at
}

func (q *mergeQueue) push(c candidate) {
	h := append(*q, c)
	at := len(h) - 1
	for at > 0 {
		parent := (at - 1) / 2
		if !c.before(h[parent]) {
			break
		}
		h[at] = h[parent]
		at = parent
	}
	h[at] = c
	*q = h
}

func (q *mergeQueue) pop() candidate {
	h := *q
	top, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	at := 0
	for {
		child := 2*at + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(last) {
			break
		}
		h[at] = h[child]
		at = child
	}
	if len(h) > 0 {
		h[at] = last
	}
	*q = h
	return top
}
