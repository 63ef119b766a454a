package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rope-rewrite/rope-rewrite/cmd/dev/internal/mutant"
)

// run is shared by the jobs.
type run struct {
	sync.Mutex
	trial
	judged int    // at which it ends, where made is 0
	made   int    // at which it ends
	file   string // of the piece; "" keeps none
	wrong  string // folder for the files of wrong ones; "" keeps none

	piece
	taken   uint64             // the next seed to be judged
	waiting map[uint64]outcome // of seeds behind one that is being judged
	since   time.Time          // up to which Seconds counts
	saved   time.Time
	err     error
}

// supported are the exports that are rewritten and run: the mutants of others say nothing.
func supported(t trial, jobs int) (list []string, _ error) {
	outcomes, errs := make([]outcome, len(t.models)), make([]error, jobs)
	var group sync.WaitGroup
	var taken atomic.Int64
	for k := range jobs {
		group.Go(func() {
			var j judge
			defer j.close()
			for errs[k] == nil {
				i := int(taken.Add(1)) - 1
				if i >= len(t.models) {
					return
				}
				outcomes[i], errs[k] = j.ask(trial{provider: t.provider}, question{Whole: t.models[i]})
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for i, o := range outcomes {
		if o.Verdict == mutant.Same {
			list = append(list, t.models[i])
			continue
		}
		fmt.Printf("# left out, %s: %s\n", o.Verdict, o.Text)
	}
	return list, nil
}

// begin is a run of all exports that are supported, or of those of its piece, which goes on where that ended.
func (r *run) begin(jobs int) (err error) {
	old, err := readPiece(r.file)
	if err != nil {
		return err
	}
	if old != nil {
		if err := r.goOn(old); err != nil {
			return fmt.Errorf("%s: %w", r.file, err)
		}
	} else {
		if r.models, err = supported(r.trial, jobs); err != nil {
			return err
		}
		r.Provider = r.provider
		for _, path := range r.models {
			r.Exports = append(r.Exports, called(path))
		}
	}
	r.taken, r.waiting, r.since = r.Next, map[uint64]outcome{}, time.Now()
	return nil
}

// goOn takes over a piece that was interrupted, if it is of the same commit and its exports are at hand.
func (r *run) goOn(old *piece) error {
	if old.Commit != r.Commit {
		return fmt.Errorf("this piece was begun at commit %s, and this is commit %s; begin another one", old.Commit, r.Commit)
	}
	if old.Provider != r.provider {
		return fmt.Errorf("this piece is run by %q, and -provider is %q; begin another one", old.Provider, r.provider)
	}
	at := map[string]string{}
	for _, path := range r.models {
		at[called(path)] = path
	}
	r.models = nil
	for _, export := range old.Exports {
		if at[export] == "" {
			return fmt.Errorf("this piece has mutants of %s, which is not among the exports that were named", export)
		}
		r.models = append(r.models, at[export])
	}
	r.piece = *old
	return nil
}

// all judges until there are enough.
func (r *run) all(jobs int) error {
	var group sync.WaitGroup
	for range jobs {
		group.Go(r.work)
	}
	group.Wait()
	if r.file != "" && r.err == nil {
		r.err = r.save(r.file)
	}
	return r.err
}

// work judges mutants.
func (r *run) work() {
	var j judge
	defer j.close()
	for {
		seed, more := r.take()
		if !more {
			return
		}
		o, err := j.ask(r.trial, question{Seed: seed})
		r.note(seed, o, err)
	}
}

// take gives the seed of the next mutant, false when there were enough.
func (r *run) take() (uint64, bool) {
	r.Lock()
	defer r.Unlock()
	if r.err != nil || r.made > 0 && int(r.taken-r.First) >= r.made || r.made == 0 && r.Judged >= r.judged {
		return 0, false
	}
	r.taken++
	return r.taken - 1, true
}

// note counts what came of a seed once all before it are counted, and saves the piece now and then.
func (r *run) note(seed uint64, o outcome, err error) {
	r.Lock()
	defer r.Unlock()
	if err == nil && o.Verdict == mutant.Wrong {
		fmt.Printf("seed %d: %s: %s\n", seed, o.Verdict, o.Text)
		if r.wrong != "" {
			err = keep(r.trial, seed, filepath.Join(r.wrong, strconv.FormatUint(seed, 10)))
		}
	}
	if err != nil {
		r.err = fmt.Errorf("seed %d: %w", seed, err)
		return
	}
	r.waiting[seed] = o
	for {
		o, done := r.waiting[r.Next]
		if !done {
			break
		}
		delete(r.waiting, r.Next)
		if r.add(o); r.Made()%1000 == 0 {
			fmt.Println("#", r.piece.String())
		}
	}
	now := time.Now()
	r.Seconds += now.Sub(r.since).Seconds()
	if r.since = now; r.file != "" && now.Sub(r.saved) > time.Second {
		r.saved, r.err = now, r.save(r.file)
	}
}

// keep judges the mutant of a seed once more, with workers, and leaves its files in a folder.
func keep(t trial, seed uint64, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	c, end, err := isolated(t, folder)
	if err != nil {
		return err
	}
	defer end()
	o, err := c.try(context.Background(), seed)
	if err != nil {
		return err
	}
	fmt.Printf("seed %d: %s: %s\n", seed, o.Verdict, o.Text)
	return os.WriteFile(filepath.Join(folder, "verdict.txt"), fmt.Appendf(nil, "seed %d: %s: %s\n", seed, o.Verdict, o.Text), 0o644)
}
