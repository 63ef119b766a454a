package lm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// scheduler generates many texts in the rows of one cache of fixed capacity. Its goroutine is the only one that
// calls the model. Between two steps of the answers, which are one call for all of them, it computes one piece
// of one prompt:
//
//	rows   0 … n−1      answers: each step is a call with these rows
//	       n … n+p−1    prompts that are being computed, each piece a call with its row alone
//	       the others   free; they keep what they held, for texts that begin in the same way
//
// When an answer ends, the last answer takes its row, so that answers stay side by side.
type scheduler struct {
	decoder *Decoder
	cache   *fixed
	queue   int // texts that may wait

	rows             []held // what each row of the cache holds
	answers, prompts []*job // in rows 0 …, and behind these

	mu      sync.Mutex
	waiting []*job
	arrived uint64 // texts so far
	closed  bool
	wake    chan struct{} // has room for one: something waits or has ended
	ended   chan struct{} // is closed when the goroutine has ended
	stop    context.CancelFunc
	now     Load
}

// held are the tokens of a row, whose keys and values are in the cache.
type held struct{ tokens, documents []int64 }

// job is one text.
type job struct {
	ctx      context.Context
	row      Row // the prompt
	document int64
	choose   chooseToken
	token    int64  // that the next step computes, of an answer
	number   uint64 // those that came before have smaller ones
	reused   int    // tokens of the prompt that the cache held
	began    bool   // the first token was chosen
	passed   int    // how often a shorter prompt went before
	out      outbox
}

func newScheduler(d *Decoder, rows, queue int) (*scheduler, error) {
	cache, err := newFixed(d, rows)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &scheduler{
		decoder: d, cache: cache, queue: queue, rows: make([]held, rows),
		wake: make(chan struct{}, 1), ended: make(chan struct{}), stop: stop,
	}
	go s.work(ctx)
	return s, nil
}

func (s *scheduler) load() Load {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.now
	l.Rows, l.Waiting = len(s.rows), len(s.waiting)
	return l
}

// generate hands a text to the goroutine, which lets it choose its tokens. The caller gets them here.
func (s *scheduler) generate(ctx context.Context, row Row, choose chooseToken, yield func(Token) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer func() { cancel(); s.signal() }() // a caller who leaves before the end gives the row free
	j := &job{ctx: ctx, row: row, document: row.Documents[len(row.Documents)-1], choose: choose, out: outbox{ready: make(chan struct{}, 1)}}
	if err := s.enqueue(j); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, s.signal)
	defer stop()
	for {
		tokens, ended, err := j.out.take()
		for _, t := range tokens {
			if !yield(t) {
				return nil
			}
		}
		if ended {
			return err
		}
	}
}

func (s *scheduler) enqueue(j *job) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ErrClosed
	case len(s.waiting) >= s.queue+len(s.rows)-s.now.Running: // those that a free row will take do not count
		return ErrQueueFull
	}
	s.arrived++
	j.number = s.arrived
	s.waiting = append(s.waiting, j)
	s.signal()
	return nil
}

// signal wakes the goroutine up.
func (s *scheduler) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *scheduler) close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	<-s.ended
	return s.cache.close()
}

// work is the goroutine.
func (s *scheduler) work(ctx context.Context) {
	defer close(s.ended)
	for ctx.Err() == nil {
		s.dropCancelled()
		s.admit()
		if len(s.answers)+len(s.prompts) == 0 {
			select {
			case <-s.wake:
			case <-ctx.Done():
			}
			continue
		}
		s.computePrompt(ctx)
		s.step(ctx)
	}
	s.endAll()
}

// endAll ends every text, because the model is closed.
func (s *scheduler) endAll() {
	s.mu.Lock()
	waiting := s.waiting
	s.waiting = nil
	s.mu.Unlock()
	for _, j := range slices.Concat(s.answers, s.prompts, waiting) {
		j.out.end(ErrClosed)
	}
	s.answers, s.prompts = nil, nil
}

// dropCancelled ends the texts whose callers have gone.
func (s *scheduler) dropCancelled() {
	for i := len(s.answers) - 1; i >= 0; i-- {
		if err := s.answers[i].ctx.Err(); err != nil {
			s.leave(i, err)
		}
	}
	for i := len(s.prompts) - 1; i >= 0; i-- {
		if err := s.prompts[i].ctx.Err(); err != nil {
			s.abandon(i, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(j *job) bool {
		err := j.ctx.Err()
		if err != nil {
			j.out.end(err)
		}
		return err != nil
	})
}

// admit gives rows to texts that wait, the first that came first.
func (s *scheduler) admit() {
	for {
		s.mu.Lock()
		s.now.Running = len(s.answers) + len(s.prompts)
		if len(s.waiting) == 0 || s.now.Running == len(s.rows) {
			s.mu.Unlock()
			return
		}
		j := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.mu.Unlock()
		s.begin(j)
	}
}

// begin gives a text the row behind those in use, with what any row holds of it.
func (s *scheduler) begin(j *job) {
	at := len(s.answers) + len(s.prompts)
	s.rows[at].truncate(s.holds(at, j))
	s.prompts = append(s.prompts, j)
	s.mu.Lock()
	s.now.Reused += uint64(len(s.rows[at].tokens))
	s.mu.Unlock()
	j.reused = len(s.rows[at].tokens)
	s.share(at, j)
}

// holds is how many tokens a row holds of a text.
func (s *scheduler) holds(row int, j *job) int {
	return s.cache.usable(s.rows[row], j.row)
}

// share copies to a text's row what another row holds more of it: a free one, or one whose text begins in the
// same way and is ahead.
func (s *scheduler) share(at int, j *job) {
	have := len(s.rows[at].tokens)
	best, from := have, at
	for i := range s.rows {
		if n := s.holds(i, j); n > best {
			best, from = n, i
		}
	}
	if from == at {
		return
	}
	s.cache.copyRow(int64(at), int64(from), int64(have), int64(best))
	s.rows[at].add(Row{s.rows[from].tokens[have:best], s.rows[from].documents[have:best]})
	s.mu.Lock()
	s.now.Reused += uint64(best - have)
	s.mu.Unlock()
	j.reused += best - have
}

func (h *held) truncate(n int) { h.tokens, h.documents = h.tokens[:n:n], h.documents[:n:n] }

func (h *held) add(row Row) {
	h.tokens, h.documents = append(h.tokens, row.Tokens...), append(h.documents, row.Documents...)
}

// swap exchanges what two rows hold.
func (s *scheduler) swap(a, b int) {
	if a == b {
		return
	}
	s.cache.swapRows(int64(a), int64(b), int64(max(len(s.rows[a].tokens), len(s.rows[b].tokens))))
	s.rows[a], s.rows[b] = s.rows[b], s.rows[a]
}

// patience is how often a prompt lets shorter ones go before.
const patience = 4

// choosePrompt is the prompt whose next piece is computed: the one with the fewest tokens left, of equal ones
// the first that came, or one that has let others go before often enough.
func (s *scheduler) choosePrompt() (chosen int) {
	left := func(i int) int { return len(s.prompts[i].row.Tokens) - len(s.rows[len(s.answers)+i].tokens) }
	for i, j := range s.prompts {
		if j.passed >= patience {
			return i
		}
		if cmp.Or(cmp.Compare(left(i), left(chosen)), cmp.Compare(j.number, s.prompts[chosen].number)) < 0 {
			chosen = i
		}
	}
	for _, j := range s.prompts {
		if j.number < s.prompts[chosen].number {
			j.passed++
		}
	}
	return chosen
}

// computePrompt computes a piece of one prompt. After the last piece the answer begins.
func (s *scheduler) computePrompt(ctx context.Context) {
	if len(s.prompts) == 0 {
		return
	}
	i := s.choosePrompt()
	j := s.prompts[i]
	j.passed = 0
	at := len(s.answers) + i
	s.share(at, j)
	have := len(s.rows[at].tokens)
	piece := Row{j.row.Tokens[have:], j.row.Documents[have:]}
	if n := s.decoder.chunk; n < len(piece.Tokens) {
		piece = Row{piece.Tokens[:n], piece.Documents[:n]}
	}
	ctx, cancel := both(ctx, j.ctx)
	logits, err := s.cache.call(ctx, int64(at), []part{{piece.Tokens, int64(have), j.row.Documents[:have+len(piece.Tokens)]}})
	cancel()
	if err != nil {
		s.abandon(i, fmt.Errorf("run the model on %d tokens after %d: %w", len(piece.Tokens), have, err))
		return
	}
	s.rows[at].add(piece)
	s.mu.Lock()
	s.now.Computed += uint64(len(piece.Tokens))
	s.mu.Unlock()
	if have+len(piece.Tokens) < len(j.row.Tokens) {
		return
	}
	// The row of the first prompt is the one behind the answers.
	s.swap(len(s.answers), at)
	s.prompts[i] = s.prompts[0]
	s.prompts = s.prompts[1:]
	s.answers = append(s.answers, j)
	s.choose(len(s.answers)-1, logits.Last())
}

// both is a context that ends with either of two.
func both(a, b context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(b)
	stop := context.AfterFunc(a, cancel)
	return ctx, func() { stop(); cancel() }
}

// step computes one token of each answer.
func (s *scheduler) step(ctx context.Context) {
	if len(s.answers) == 0 {
		return
	}
	parts := make([]part, len(s.answers))
	for i, j := range s.answers {
		r := &s.rows[i]
		parts[i] = part{[]int64{j.token}, int64(len(r.tokens)), append(r.documents, j.document)}
	}
	logits, err := s.cache.call(ctx, 0, parts)
	if ctx.Err() != nil {
		return // all texts are ended then
	}
	for i := len(s.answers) - 1; i >= 0; i-- { // from the last on: those that leave are replaced by ones that had their turn
		if err != nil {
			s.leave(i, fmt.Errorf("run the model on a token of each of %d texts: %w", len(parts), err))
			continue
		}
		j := s.answers[i]
		s.rows[i].add(Row{[]int64{j.token}, []int64{j.document}})
		s.choose(i, logits.Data[i*logits.Vocabulary:][:logits.Vocabulary])
	}
}

// choose lets a text choose its next token, and ends it where it is done.
func (s *scheduler) choose(i int, logits []float32) {
	j := s.answers[i]
	t, err := j.tryChoose(logits)
	if err == nil {
		if !j.began {
			t.Cached, j.began = j.reused, true
		}
		j.out.put(t)
		j.token = t.ID
	}
	if err != nil || t.Finish != "" {
		s.leave(i, err)
	}
}

// tryChoose keeps a fault of a caller's function from ending all other texts.
func (j *job) tryChoose(logits []float32) (t Token, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("the caller's function panicked: %v", fault)
		}
	}()
	return j.choose(logits)
}

// leave ends an answer. The last answer takes its row, and the last prompt the row of that.
func (s *scheduler) leave(i int, err error) {
	j := s.answers[i]
	last := len(s.answers) - 1
	s.swap(i, last)
	s.answers[i] = s.answers[last]
	s.answers = s.answers[:last]
	if p := len(s.prompts); p > 0 { // prompts stay behind the answers
		s.swap(last, last+p)
		s.prompts = append(s.prompts[p-1:p:p], s.prompts[:p-1]...)
	}
	j.out.end(err)
}

// abandon ends a prompt that is not computed to its end.
func (s *scheduler) abandon(i int, err error) {
	j := s.prompts[i]
	at, last := len(s.answers)+i, len(s.answers)+len(s.prompts)-1
	s.swap(at, last)
	s.prompts[i] = s.prompts[len(s.prompts)-1]
	s.prompts = s.prompts[:len(s.prompts)-1]
	if errors.Is(err, context.Canceled) && j.ctx.Err() == nil {
		err = ErrClosed
	}
	j.out.end(err)
}
