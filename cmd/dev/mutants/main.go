// Command mutants changes real exports in one to three places each and looks for one whose
// output a rewrite changes:
//
//	go run ./cmd/dev/mutants -judged 2000 testdata/models/*/model.onnx
//
// It prints every wrong one and ends with 1 when there was one. Control nodes, those that masks, angles and
// places in caches are made by, are drawn twice as often as others. Of the mutants of control nodes it says how
// many give other logits than their export, by float64, and the same of a tenth of the others.
//
// Many mutants are judged in pieces. A piece is a file; one that was interrupted goes on at its next seed:
//
//	go run ./cmd/dev/mutants -commit $(git rev-parse --short HEAD) -seed 1 -judged 10000 -piece FILE MODELS
//	go run ./cmd/dev/mutants -table build/mutants.csv -add FILE
//
// The second command puts it into the table of all pieces and prints their sum.
//
// Judges are processes of their own, which evaluate in themselves and remember what pieces of an export
// gave: most of a mutant is as it was. A mutant that ends its judge is judged again with workers.
//
// With -provider CUDA what was proven on the CPU is run by CUDA's kernels, beside the mutant on the same GPU.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/rope-rewrite/rope-rewrite/internal/buildfiles"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

func main() {
	rewrite.ServeIfWorker()
	r := &run{}
	flag.IntVar(&r.made, "made", 0, "mutants that are made, whether they are judged or not; 0 counts those that are judged")
	flag.IntVar(&r.judged, "judged", 2000, "mutants that are judged")
	flag.Uint64Var(&r.First, "seed", 1, "of the first mutant; each has one of its own")
	flag.StringVar(&r.file, "piece", "", "file of the piece, which goes on where it ended; none is kept without")
	flag.StringVar(&r.Commit, "commit", "", "commit that a piece is judged at")
	flag.StringVar(&r.wrong, "wrong", "", "folder for the files of wrong mutants; none are kept without")
	only := flag.Bool("one", false, "judge the mutant of this seed alone, of the exports of the piece if there is one, and keep its files in the working directory")
	jobs := flag.Int("jobs", 2, "mutants that are judged at a time")
	table := flag.String("table", "", "table of pieces: print the sum of them, and judge nothing")
	added := flag.String("add", "", "piece to put into the table first")
	flag.StringVar(&r.provider, "provider", "", "execution provider that runs mutants and what they are rewritten to, such as CUDA; proofs are made on the CPU")
	isJudge := flag.Bool("judge", false, "be a judge: read questions, write verdicts (for the command itself)")
	flag.Parse()
	r.models, r.Next = flag.Args(), r.First
	err := buildfiles.SetLibraries()
	switch {
	case *table != "":
		err = sum(*table, *added)
	case len(r.models) == 0 && !*isJudge:
		err = errors.New("name exports to change")
	case err != nil:
	case *isJudge:
		err = serve(os.Stdin, os.Stdout, r.trial)
	case r.file != "" && r.Commit == "":
		err = errors.New("name the commit that the piece is judged at (-commit)")
	default:
		err = r.judgeThem(*only, *jobs)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// judgeThem judges one mutant or many.
func (r *run) judgeThem(only bool, jobs int) (err error) {
	seed := r.First // a piece has its own
	if err := r.begin(jobs); err != nil {
		return err
	}
	if only {
		return keep(r.trial, seed, ".")
	}
	err = r.all(jobs)
	fmt.Println(r.piece.String())
	if err == nil && r.Wrong > 0 {
		err = fmt.Errorf("%d are wrong", r.Wrong)
	}
	return err
}
