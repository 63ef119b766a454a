package ref_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// float32s are the float32 numbers whose shortest decimals the file holds.
type float32s []float64

func (f *float32s) UnmarshalJSON(data []byte) error {
	var short []float32
	if err := json.Unmarshal(data, &short); err != nil {
		return err
	}
	for _, x := range short {
		*f = append(*f, float64(x))
	}
	return nil
}

// hfCase is an attention that transformers computed, with what went in.
type hfCase struct {
	Name           string
	RopeParameters json.RawMessage `json:"rope_parameters"`
	DefaultInvFreq float32s        `json:"default_inv_freq"`
	Batch, Heads   int
	KVHeads        int `json:"kv_heads"`
	HeadDim        int `json:"head_dim"`
	Length, Past   int
	Query, Key     float32s
	Value, Output  float32s
	PastKey        float32s `json:"past_key"`
	PastValue      float32s `json:"past_value"`
	PresentKey     float32s `json:"present_key"`
	Positions      []int64
	KeyMask        []bool `json:"key_mask"`
	Softcap        float64
	Sinks, Bias    float32s
	Window         int64
	Documents      []int64
	Restart        bool
}

// transformers' attention (float32) differs from the reference by at most
// twice what a plain float32 implementation does.
func TestHuggingFaceAttention(t *testing.T) {
	data, err := os.ReadFile("../testdata/hf.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Attention []hfCase }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Attention) == 0 {
		t.Fatal("no attention cases in hf.json")
	}
	for _, c := range file.Attention {
		t.Run(c.Name, c.run)
	}
}

func (c hfCase) run(t *testing.T) {
	p := c.problem(t)
	exact, plain := mustRun(t, p), mustRun32(t, p)
	for b := range c.Batch { // the output of padded queries is not defined
		for l := range c.Length {
			if exact.Visible[b*c.Length+l] > 0 {
				continue
			}
			for h := range c.Heads {
				at := ((b*c.Heads+h)*c.Length + l) * c.HeadDim
				copy(c.Output[at:at+c.HeadDim], exact.Output[at:at+c.HeadDim])
			}
		}
	}
	for _, x := range []struct {
		name             string
		got, exact, mine []float64
	}{
		{"output", c.Output, exact.Output, plain.Output},
		{"present key", c.PresentKey, exact.PresentKey, plain.PresentKey},
	} {
		theirs, mine := distance(x.got, x.exact), distance(x.mine, x.exact)
		t.Logf("%s: transformers differs by %.2g, plain float32 by %.2g", x.name, theirs, mine)
		if theirs > 2*mine {
			t.Errorf("%s: transformers differs by %g, plain float32 only by %g", x.name, theirs, mine)
		}
	}
}

// problem is the case for the reference.
func (c hfCase) problem(t *testing.T) ref.Problem {
	t.Helper()
	spec, err := rope.ParseRopeParameters(c.RopeParameters)
	if err != nil {
		t.Fatal(err)
	}
	a, _, err := spec.Apply(rope.Attention{
		Heads: c.Heads, KVHeads: c.KVHeads, HeadSize: c.HeadDim,
		Encoding: rope.Encoding{Frequencies: c.DefaultInvFreq},
		Mask:     rope.Mask{Causal: true, Padding: true, Window: c.Window, Restart: c.Restart},
		Softcap:  c.Softcap, Sinks: c.Sinks,
	}, rope.Context{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Documents != nil {
		a.Mask.Documents = rope.IntraDocument
	}
	p := ref.Problem{
		Attention: a, Batch: c.Batch, Length: c.Length, Past: c.Past,
		Query: c.Query, Key: c.Key, Value: c.Value, PastKey: c.PastKey, PastValue: c.PastValue,
		Positions: c.Positions, KeyMask: c.KeyMask, Documents: c.Documents, Bias: c.Bias,
	}
	if c.Restart {
		p.Positions = nil // the reference finds them
	}
	return p
}
