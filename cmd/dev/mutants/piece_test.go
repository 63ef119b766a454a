package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rope-rewrite/rope-rewrite/cmd/dev/internal/mutant"
)

// outcomes are four that come in another order than their seeds.
var outcomes = map[uint64]outcome{
	5: {Verdict: mutant.Same, Control: true, Compared: true, Differs: true},
	6: {Verdict: mutant.NotRun},
	7: {Verdict: mutant.Unchanged, Compared: true},
	8: {Verdict: mutant.Same, Control: true, Compared: true},
}

func begun(t *testing.T, file, commit string, models ...string) *run {
	t.Helper()
	r := &run{file: file, trial: trial{models: models}, made: 4}
	r.Commit, r.First, r.Next, r.Exports = commit, 5, 5, []string{"models/b", "models/a"}
	if err := r.save(file); err != nil {
		t.Fatal(err)
	}
	if err := r.begin(1); err != nil {
		t.Fatal(err)
	}
	return r
}

// A piece counts each seed once, in their order, however far it came before it was interrupted.
func TestPieceGoesOn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "piece.json")
	models := []string{"testdata/models/a/model.onnx", "testdata/models/b/model.onnx"}
	r := begun(t, file, "abc", models...)
	if want := []string{models[1], models[0]}; !reflect.DeepEqual(r.models, want) {
		t.Errorf("exports %v, want %v", r.models, want)
	}
	for range 3 {
		r.take()
	}
	r.note(5, outcomes[5], nil)
	r.saved = time.Time{}
	r.note(7, outcomes[7], nil) // seed 6 is still judged, so that 7 is judged again after an interruption
	again := &run{file: file, trial: trial{models: models}, made: 4}
	again.Commit = "abc"
	if err := again.begin(1); err != nil {
		t.Fatal(err)
	}
	if again.Next != 6 || again.Judged != 1 {
		t.Errorf("goes on at seed %d with %d judged, want seed 6 with 1", again.Next, again.Judged)
	}
	for {
		seed, more := again.take()
		if !more {
			break
		}
		again.note(seed, outcomes[seed], nil)
	}
	if want := (counts{Judged: 3, Same: 2, Kept: 1, Control: 2, ControlChanged: 1, Drawn: 1}); again.counts != want || again.Next != 9 {
		t.Errorf("%+v up to seed %d, want %+v up to 9", again.counts, again.Next, want)
	}
}

// Counts of two commits, of other exports or of two execution providers are not added up.
func TestPieceOfAnother(t *testing.T) {
	file := filepath.Join(t.TempDir(), "piece.json")
	begun(t, file, "abc", "models/a/model.onnx", "models/b/model.onnx")
	for commit, want := range map[string]string{"def": "begun at commit abc", "abc": "mutants of models/b"} {
		r := &run{file: file, trial: trial{models: []string{"models/a/model.onnx"}}}
		r.Commit = commit
		if err := r.begin(1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("commit %s: %v, want %q", commit, err, want)
		}
	}
	r := &run{file: file, trial: trial{models: []string{"models/a/model.onnx", "models/b/model.onnx"}, provider: "CUDA"}}
	r.Commit = "abc"
	if err := r.begin(1); err == nil || !strings.Contains(err.Error(), `run by ""`) {
		t.Errorf("another provider: %v", err)
	}
}

// A piece that went on replaces its row of the table.
func TestTable(t *testing.T) {
	folder := t.TempDir()
	file, table := filepath.Join(folder, "piece.json"), filepath.Join(folder, "mutants.csv")
	p := piece{Commit: "abc", First: 1, Next: 11, counts: counts{Judged: 4, Same: 4}}
	for range 2 {
		if err := p.save(file); err != nil {
			t.Fatal(err)
		}
		if err := sum(table, file); err != nil {
			t.Fatal(err)
		}
		p.Next, p.Judged = 21, 9
	}
	p.First = 11
	if err := p.save(file); err != nil {
		t.Fatal(err)
	}
	if err := sum(table, file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Join(columns, ",") + "\nabc,0,1,20,9,4,0,0,0,0,0,0,\nabc,0,11,10,9,4,0,0,0,0,0,0,\n"; string(text) != want {
		t.Errorf("%s, want %s", text, want)
	}
}
