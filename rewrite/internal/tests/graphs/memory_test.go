package graphs_test

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/largemodel"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// TestMemory: a rewrite that needs more memory than it may take is an error that
// says so, whichever process needs it, and no site is kept for that.
func TestMemory(t *testing.T) {
	testruntime.Require(t)
	wide := largemodel.Llama{Layers: 1, Heads: 512, KVHeads: 512, HeadSize: 4, Intermediate: 16, Vocabulary: 32, Theta: 10000}
	path, _, err := wide.Write(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	collected := debug.SetMemoryLimit(-1)
	for name, c := range map[string]struct {
		bytes uint64
		fits  bool
	}{
		"enough":                     {4 << 30, true},
		"too little for the worker":  {160 << 20, false},
		"too little for any program": {4 << 20, false},
	} {
		m := kit.OpenModel(t, path)
		report, err := kit.Rewrite(context.Background(), m, rewrite.Options{Evaluation: rewrite.Evaluation{Worker: []string{os.Args[0]}, Memory: c.bytes}})
		if c.fits && (err != nil || report.Rewritten() != 1) {
			t.Errorf("%s: %d rewritten, error %v", name, report.Rewritten(), err)
		}
		if !c.fits && (!errors.Is(err, rewrite.ErrMemory) || !strings.Contains(err.Error(), "MB")) {
			t.Errorf("%s: error %v, sites %+v", name, err, report.Sites)
		}
		if now := debug.SetMemoryLimit(-1); now != collected {
			t.Errorf("%s: the collector's limit is left at %d", name, now)
		}
	}
}

// TestDeadline: what has no time left is the context's error, and no site is kept for that.
func TestDeadline(t *testing.T) {
	testruntime.Require(t)
	ctx, stop := context.WithTimeout(context.Background(), 1)
	defer stop()
	p := newPatient(t, "llama__dynamo18-eager")
	if report, err := kit.Rewrite(ctx, kit.OpenModel(t, p.Saved()), rewrite.Options{Evaluation: rewrite.Evaluation{Worker: []string{os.Args[0]}}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, sites %+v", err, report.Sites)
	}
}
