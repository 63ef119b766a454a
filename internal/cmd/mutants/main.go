// Command mutants changes real exports in one to three places each and looks for one whose
// output a rewrite changes:
//
//	go run ./internal/cmd/mutants -judged 2000 testdata/models/*/model.onnx
//
// It prints every wrong one and ends with 1 when there was one. Of those that were judged it says
// how many give other logits than their export, by float64 (-differ=false leaves that out).
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/mutant"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

func main() {
	rewrite.ServeIfWorker()
	judged := flag.Int("judged", 2000, "mutants that are judged")
	seed := flag.Uint64("seed", 1, "of the first mutant; each has one of its own")
	only := flag.Bool("one", false, "judge the mutant of this seed alone and keep its files in the working directory")
	jobs := flag.Int("jobs", 2, "mutants that are judged at a time")
	differ := flag.Bool("differ", true, "count those that give other logits than their export")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "mutants: name exports to change")
		os.Exit(2)
	}
	r := &run{models: flag.Args(), left: *judged, next: *seed, counts: map[mutant.Verdict]int{}, keep: *only, differ: *differ}
	if *only {
		r.left, *jobs = 1, 1
	}
	var group sync.WaitGroup
	for range *jobs {
		group.Go(r.work)
	}
	group.Wait()
	fmt.Printf("%d mutants, judged %d: ", r.made, r.counts[mutant.Same]+r.counts[mutant.NotChanged]+r.counts[mutant.Wrong])
	for _, v := range []mutant.Verdict{mutant.Same, mutant.NotChanged, mutant.Wrong, mutant.NotRun, mutant.Unsteady} {
		fmt.Printf("%s %d; ", v, r.counts[v])
	}
	if r.differ {
		fmt.Printf("%d of them give other logits than their export; ", r.different)
	}
	fmt.Println()
	if r.failed || r.counts[mutant.Wrong] > 0 {
		os.Exit(1)
	}
}

// run is shared by the jobs.
type run struct {
	sync.Mutex
	models     []string
	left, made int
	next       uint64
	counts     map[mutant.Verdict]int
	keep       bool
	differ     bool
	different  int
	failed     bool
}

// take gives the seed of the next mutant, false when enough were judged.
func (r *run) take() (uint64, bool) {
	r.Lock()
	defer r.Unlock()
	if r.left <= 0 || r.failed || r.keep && r.made > 0 {
		return 0, false
	}
	r.next++
	r.made++
	return r.next - 1, true
}

func (r *run) work() {
	eng, err := engine.NewWorker(engine.Config{Threads: 1}, os.Args[0])
	if err != nil {
		fmt.Println(err)
		r.Lock()
		r.failed = true
		r.Unlock()
		return
	}
	defer eng.Close()
	for {
		seed, more := r.take()
		if !more {
			return
		}
		v, text, err := r.one(eng, seed)
		r.Lock()
		if err != nil {
			fmt.Printf("seed %d: %v\n", seed, err)
			r.failed = true
		}
		r.counts[v]++
		if v.Judged() {
			r.left--
		}
		if v == mutant.Wrong || r.keep {
			fmt.Printf("seed %d: %s: %s\n", seed, v, text)
		}
		if r.made%200 == 0 {
			fmt.Printf("# %d made, %v\n", r.made, r.counts)
		}
		r.Unlock()
	}
}

// one makes and judges the mutant of a seed.
func (r *run) one(eng engine.Engine, seed uint64) (v mutant.Verdict, text string, _ error) {
	rng := rand.New(rand.NewPCG(seed, 0))
	path := r.models[rng.IntN(len(r.models))]
	m, err := onnx.Open(path)
	if err != nil {
		return v, "", err
	}
	defer m.Close()
	what, ok := mutant.Change(m, rng)
	if !ok {
		return mutant.NotRun, "nothing could be changed", nil
	}
	folder := "."
	if !r.keep {
		if folder, err = os.MkdirTemp("", "mutant"); err != nil {
			return v, "", err
		}
		defer os.RemoveAll(folder)
	}
	v, why, err := mutant.Judge(context.Background(), eng, m, folder, []string{os.Args[0]})
	if err == nil && v.Judged() && r.differ {
		// What cannot be computed in float64 (a fused op) is not counted.
		if other, err := mutant.Differs(context.Background(), eng, path, filepath.Join(folder, mutant.File)); err == nil && other {
			r.Lock()
			r.different++
			r.Unlock()
		}
	}
	return v, strings.Join([]string{filepath.Base(filepath.Dir(path)), what, why}, ": "), err
}
