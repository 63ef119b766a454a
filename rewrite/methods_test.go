package rewrite_test

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// methodGoldens is testdata/goldens/methods.json.
type methodGoldens struct {
	Trained int64 `json:"trained"`
	Context int64 `json:"context"`
	Step    int   `json:"step"` // every so many tokens have logits

	RunPrefill int64 `json:"run_prefill"` // first call of what is decoded with length=run
	Cases      map[string]struct {
		Edits []string `json:"edits"`
	} `json:"cases"`
}

func readMethodGoldens(t *testing.T) methodGoldens {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testdata, "goldens", "methods.json"))
	if err != nil {
		t.Fatal(err)
	}
	var g methodGoldens
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// edits reads "axis spec" texts.
func edits(t *testing.T, texts []string) (list []rope.Spec) {
	t.Helper()
	for _, text := range texts {
		axis, s, _ := strings.Cut(text, " ")
		for _, x := range []rope.Axis{rope.ScalingAxis, rope.PositionsAxis, rope.MaskAxis} {
			if x.String() == axis {
				list = append(list, spec(t, x, s))
			}
		}
	}
	return list
}

// TestMethodGoldens compares patched models with transformers and with explicit
// matrices of distances, in prefill and decode, batched, padded, with a growing
// and with a fixed cache.
func TestMethodGoldens(t *testing.T) {
	testruntime.Require(t)
	goldens := readMethodGoldens(t)
	f, err := npz.Open(filepath.Join(testdata, "goldens", "methods.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, name := range slices.Sorted(maps.Keys(goldens.Cases)) {
		if strings.HasSuffix(name, "_run") {
			continue // TestLengthOfRun
		}
		for _, export := range []string{"llama__optimum", "llama__dynamo23", "llama__genai-fp32"} {
			t.Run(name+"/"+export, func(t *testing.T) {
				opts := rewrite.Options{
					Edits:   edits(t, goldens.Cases[name].Edits),
					Context: rope.Context{Length: goldens.Context, Original: goldens.Trained},
				}
				documents := strings.Contains(name, "anchor")
				if documents {
					opts.Documents = rewrite.DocumentsInput
				}
				path, _ := patch(t, model(export), opts)
				growing := open(t, path)
				fixed := growing
				if export != "llama__genai-fp32" { // counts its rows by itself
					opts.FixedCapacity = 48
					path, _ = patch(t, model(export), opts)
					fixed = open(t, path)
				}
				for _, padded := range []bool{false, true} {
					suffix := ""
					if padded {
						suffix = "_pad"
					}
					want, _, err := f.Float32(name + suffix)
					if err != nil {
						if padded {
							continue // there is none: the mask counts places
						}
						t.Fatal(err)
					}
					g := readGolden(t, "llama", "plain", padded)
					if documents {
						g = readMaskGolden(t, "llama", "anchor", "documents", padded)
					}
					if padded && export == "llama__genai-fp32" {
						continue // its cache has no place for padding on the left
					}
					for way, chunks := range ways {
						if export != "llama__optimum" && way != "then decode" {
							continue // one export shows them all
						}
						for kind, d := range map[string]*decoder.Decoder{"growing": growing, "fixed": fixed} {
							logits, err := d.Chunks(context.Background(), g.sequence, chunks...)
							if err != nil {
								t.Fatalf("%s, %s cache, padded %v: %v", way, kind, padded, err)
							}
							if off := sparseDistance(t, g, logits, want, goldens.Step); !(off <= 1e-4) {
								t.Errorf("%s, %s cache, padded %v: off by %.2g", way, kind, padded, off)
							} else {
								t.Logf("%s, %s cache, padded %v: off by %.2g", way, kind, padded, off)
							}
						}
					}
				}
			})
		}
	}
}

// With length=run every call turns all its keys by its own frequencies: each
// step is that of an eager float64 model which keeps raw keys and does so, and
// one call for the whole text is what transformers computes.
func TestLengthOfRun(t *testing.T) {
	testruntime.Require(t)
	goldens := readMethodGoldens(t)
	f, err := npz.Open(filepath.Join(testdata, "goldens", "methods.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, name := range []string{"dynamic_run", "dynamic-linear_run", "longrope_run"} {
		t.Run(name, func(t *testing.T) {
			path, report := patch(t, model("llama__optimum"), rewrite.Options{Edits: edits(t, goldens.Cases[name].Edits)})
			if !slices.Contains(report.Edits, "cache raw") {
				t.Errorf("the report has the edits %q", report.Edits)
			}
			d := open(t, path)
			for _, padded := range []bool{false, true} {
				suffix := ""
				if padded {
					suffix = "_pad"
				}
				g := readGolden(t, "llama", "plain", padded)
				for key, chunks := range map[string][]int64{
					name:           append([]int64{goldens.RunPrefill}, slices.Repeat([]int64{1}, int(48-goldens.RunPrefill))...),
					name + "_full": {48},
				} {
					want, _, err := f.Float32(key + suffix)
					if err != nil {
						t.Fatal(err)
					}
					if off := sparseDistance(t, g, chunked(t, d, g.sequence, chunks), want, goldens.Step); !(off <= 1e-4) {
						t.Errorf("%s, padded %v: off by %.2g", key, padded, off)
					} else {
						t.Logf("%s, padded %v: off by %.2g", key, padded, off)
					}
				}
			}
		})
	}
}

// sparseDistance compares every step-th token's logits: of all rows, or of the
// real tokens of the second where it is padded.
func sparseDistance(t *testing.T, g golden, logits []float64, want []float32, step int) float64 {
	t.Helper()
	batch, length := int(g.sequence.Batch), int(g.sequence.Length)
	width := len(logits) / (batch * length)
	var picked []float64
	for b := range batch {
		first := 0
		for g.sequence.Mask[b*length+first] == 0 {
			first++
		}
		if g.padded && b == 0 {
			continue
		}
		for i := first; i < length; i += step {
			picked = append(picked, logits[(b*length+i)*width:][:width]...)
		}
	}
	if len(picked) != len(want) {
		t.Fatalf("%d logits, the golden has %d", len(picked), len(want))
	}
	worst := 0.0
	for i, x := range picked {
		worst = math.Max(worst, math.Abs(x-float64(want[i])))
	}
	return worst
}
