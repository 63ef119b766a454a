// Command mutants changes real exports in one to three places each and looks for one whose
// output a rewrite changes:
//
//	go run ./cmd/dev/mutants -judged 2000 testdata/models/*/model.onnx
//
// It prints every wrong one and ends with 1 when there was one. Of those that were judged it says
// how many give other logits than their export, by float64 (-differ=false leaves that out). A run
// goes on where another one ended with -seed.
//
// Judges are processes of their own, which evaluate in themselves: that is twice as fast as a worker
// for each rewrite. A mutant that ends its judge is judged again with workers.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"

	"github.com/rope-rewrite/rope-rewrite/cmd/dev/internal/mutant"
	"github.com/rope-rewrite/rope-rewrite/internal/buildfiles"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

func main() {
	rewrite.ServeIfWorker()
	made := flag.Int("made", 0, "mutants that are made, whether they are judged or not; 0 counts those that are judged")
	judged := flag.Int("judged", 2000, "mutants that are judged")
	seed := flag.Uint64("seed", 1, "of the first mutant; each has one of its own")
	only := flag.Bool("one", false, "judge the mutant of this seed alone and keep its files in the working directory")
	jobs := flag.Int("jobs", 2, "mutants that are judged at a time")
	differ := flag.Bool("differ", true, "count those that give other logits than their export")
	serve := flag.Bool("judge", false, "be a judge: read seeds, write verdicts (for the command itself)")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "mutants: name exports to change")
		os.Exit(2)
	}
	if err := buildfiles.SetLibraries(); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
	if *serve {
		if err := serveSeeds(os.Stdin, os.Stdout, flag.Args(), *differ); err != nil {
			fmt.Fprintln(os.Stderr, "mutants:", err)
			os.Exit(1)
		}
		return
	}
	r := &run{models: flag.Args(), judged: *judged, most: *made, first: *seed, next: *seed, counts: map[mutant.Verdict]int{}, differ: *differ}
	if *only {
		r.alone()
	} else {
		var group sync.WaitGroup
		for range *jobs {
			group.Go(r.work)
		}
		group.Wait()
	}
	fmt.Println(r)
	if r.failed || r.counts[mutant.Wrong] > 0 {
		os.Exit(1)
	}
}

// run is shared by the jobs.
type run struct {
	sync.Mutex
	models       []string
	judged, most int // at which it ends; most is 0 where judged counts
	first, next  uint64
	counts       map[mutant.Verdict]int
	differ       bool
	different    int
	failed       bool
}

func (r *run) String() string {
	text := fmt.Sprintf("%d mutants, seeds from %d; judged %d: ", r.next-r.first, r.first, r.soFar())
	for _, v := range []mutant.Verdict{mutant.Same, mutant.Unchanged, mutant.Wrong, mutant.NotRun, mutant.Unsteady} {
		text += fmt.Sprintf("%s %d; ", v, r.counts[v])
	}
	if r.differ {
		text += fmt.Sprintf("%d of them give other logits than their export", r.different)
	}
	return text
}

// soFar is how many were judged.
func (r *run) soFar() (n int) {
	for v, count := range r.counts {
		if v.Judged() {
			n += count
		}
	}
	return n
}

// take gives the seed of the next mutant, false when there were enough.
func (r *run) take() (uint64, bool) {
	r.Lock()
	defer r.Unlock()
	if r.failed || r.most > 0 && int(r.next-r.first) >= r.most || r.most == 0 && r.soFar() >= r.judged {
		return 0, false
	}
	r.next++
	return r.next - 1, true
}

// note counts what came of a seed, and prints what is wrong.
func (r *run) note(seed uint64, o outcome, err error) {
	r.Lock()
	defer r.Unlock()
	if err != nil {
		fmt.Printf("seed %d: %v\n", seed, err)
		r.failed = true
		return
	}
	r.counts[o.Verdict]++
	if o.Differs {
		r.different++
	}
	if o.Verdict == mutant.Wrong {
		fmt.Printf("seed %d: %s: %s\n", seed, o.Verdict, o.Text)
	}
	if seed%1000 == 0 {
		fmt.Println("#", r)
	}
}

// work judges mutants, each in a judge and where that ends by itself in workers.
func (r *run) work() {
	var j judge
	defer j.close()
	for {
		seed, more := r.take()
		if !more {
			return
		}
		o, err := j.ask(r.models, r.differ, seed)
		if err != nil {
			o, err = isolated(r.models, r.differ, seed, "")
		}
		r.note(seed, o, err)
	}
}

// alone judges the mutant of one seed and keeps its files in the working directory.
func (r *run) alone() {
	o, err := isolated(r.models, r.differ, r.next, ".")
	r.next++
	r.note(r.first, o, err)
	fmt.Printf("seed %d: %s: %s\n", r.first, o.Verdict, o.Text)
}

// isolated makes and judges a mutant with workers. folder is where its files stay, "" for nowhere.
func isolated(models []string, differ bool, seed uint64, folder string) (outcome, error) {
	eng, err := engine.NewWorker(engine.Config{Threads: 1}, os.Args[0])
	if err != nil {
		return outcome{}, err
	}
	defer eng.Close()
	c := court{eng: eng, worker: []string{os.Args[0]}, models: models, differ: differ}
	return c.try(context.Background(), seed, folder)
}
