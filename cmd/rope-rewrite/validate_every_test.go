package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/validate"
)

// What every test model is given, by all kinds of choices of layers. A model that refuses one is
// left out.
var (
	everyMethod = []string{
		"--scaling theta:rope_theta=500000", "--scaling linear:factor=2", "--scaling ntk:alpha=4", "--scaling dynamic:factor=2,original_max_position_embeddings=32@ --context 64",
		"--scaling dynamic-linear:original_max_position_embeddings=32@ --context 64", "--scaling partial-ntk:factor=4,original_max_position_embeddings=32",
		"--scaling ntk-by-parts:factor=4,original_max_position_embeddings=32", yarn,
		"--scaling llama3:factor=8,low_freq_factor=1,high_freq_factor=4,original_max_position_embeddings=32", "--scaling beta-ary:factor=4",
		"--scaling resonance", "--scaling nope", "--scaling log-n:original_max_position_embeddings=32",
		near, "--positions rerope:window=8", "--positions leaky-rerope:window=8,factor=4", extend, "--positions dual-chunk:chunk_size=24,local_size=8",
		"--mask sliding-window:window=8", "--mask first-keys:count=2,window=8", "--mask causal",
	}
	everyLayers = []string{"@all", "", "@0", "@1"}
)

// everySample is how many of the cases make test-every tries.
const everySample = 100

// every asks for all cases, which take half an hour: make confirm.
var every = flag.Bool("every", false, "confirm every rewrite of every test model")

// Every rewrite of every test model, by layers too, is confirmed, and the bodies of its fallback are in
// the table of known ones; -update adds those that are not. Without -every, a sample is.
func TestEveryRewriteIsConfirmed(t *testing.T) {
	v := newValidation(t)
	files, err := filepath.Glob("../../testdata/models/*/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	type rewritten struct{ model, flags string }
	var cases []rewritten
	for i, where := range everyLayers {
		for _, file := range files {
			for j, method := range everyMethod {
				if i == 0 || (j+len(cases))%12 == 0 { // the choices of layers other than all: some
					flags, more, _ := strings.Cut(method, "@")
					cases = append(cases, rewritten{filepath.Base(filepath.Dir(file)), flags + where + more})
				}
			}
		}
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] }) // a sample has some of all
	cases = slices.Insert(cases, 0, rewritten{"gemma3_text__dynamo18", "--scaling linear:factor=2@all"}, rewritten{"gemma3_text__dynamo18", "--positions rerope:window=8@all"})
	confirmed, refused := 0, map[string]int{}
	if !*every && !*update {
		t.Logf("%d of %d cases; make confirm has all", everySample, len(cases))
		cases = testsample.Of(t, cases[:everySample], 5)
	}
	for _, c := range cases {
		out := filepath.Join(t.TempDir(), "patched.onnx")
		var stdout, stderr bytes.Buffer
		if code := run(context.Background(), append([]string{model(c.model), "-o", out}, strings.Fields(c.flags)...), &stdout, &stderr); code != 0 {
			refused[strings.Join(strings.Fields(stderr.String()), " ")]++
			continue
		}
		if lines := unknown(t, out); *update {
			addKnown(t, lines)
			continue
		} else if len(lines) > 0 {
			t.Errorf("%s %s: a body of its fallback is not in the table of known ones; add it with -update", c.model, c.flags)
		}
		r, err := v.validate(c.model, out, 24)
		if unrun := (*validate.UnrunError)(nil); errors.As(err, &unrun) {
			refused[err.Error()]++
			continue
		}
		if err != nil {
			t.Errorf("%s %s: %v", c.model, c.flags, err)
			continue
		}
		alone := r.Verdict == validate.NotShown && strings.Contains(strings.Join(r.Notes, " "), "Not compared: ") // a layer has no reference
		if !r.Verdict.Holds() && !alone || r.Rebuilt == nil || r.Rebuilt.First != nil {
			t.Errorf("%s %s: %s; %+v %q", c.model, c.flags, r.Verdict, r.Rebuilt, r.Notes)
			continue
		}
		if r.Claim.Changes != (r.Verdict == validate.AsClaimed || alone) {
			t.Errorf("%s %s: %s, with methods: %v", c.model, c.flags, r.Verdict, r.Claim.Changes)
		}
		if confirmed++; confirmed%50 == 0 {
			t.Logf("%d confirmed so far", confirmed)
		}
		_ = os.Remove(out)
	}
	t.Logf("%d confirmed", confirmed)
	for why, n := range refused {
		t.Logf("%d refused: %s", n, why)
	}
}

// unknown are the fingerprints of a model's fallback that are not known.
func unknown(t *testing.T, path string) (lines []string) {
	t.Helper()
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, f := range definition.Unknown(m) {
		lines = append(lines, definition.Fingerprint(m, f))
	}
	return lines
}

// addKnown adds lines to the table of known bodies.
func addKnown(t *testing.T, lines []string) {
	t.Helper()
	path := filepath.Join("../../rewrite/definition", definition.KnownFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines = slices.DeleteFunc(append(lines, strings.Fields(string(text))...), func(line string) bool { return line == "" })
	slices.Sort(lines)
	if err := os.WriteFile(path, []byte(strings.Join(slices.Compact(lines), "\n")+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
}
