package provenance_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// full has a value in every field that is no number of its own.
func full() *provenance.Record {
	return &provenance.Record{
		Version: 1, Tool: "0.1.0", Target: "ops", OpSpec: 4, Graph: "ab", MaxError: 1.1e-05,
		Configuration: provenance.Configuration{Trained: 2048, Theta: 10000, Context: 8192},
		Edits: []provenance.Edit{{What: "scaling", Given: "yarn", Layers: []int{0, 1}, Settings: []rope.Setting{
			{Name: "factor", Value: rope.Number(4), From: rope.FromContext},
			{Name: "truncate", Value: rope.Bool(true), From: rope.Default},
			{Name: "ramp", Value: rope.Text("hf"), From: rope.Default},
			{Name: "inv_freq", Value: rope.List(1, 0.1), From: rope.Given},
		}}},
		Sites: []provenance.Site{{
			Layers: []int{0, 1}, Nodes: []string{"a", "b"}, Ops: []string{"c", "d"}, PositionIDs: []string{"", "p"}, Scope: "then_branch of If", Op: "Softmax", Positions: "they are halves",
			Cache: "growing", Normed: [2]bool{true, false}, AfterRotation: "query normed", Unknown: 1e-3, Latent: true, Form: "inlined", Computes: &rope.Attention{Heads: 4, HeadSize: 16},
			Proof: &provenance.Proof{MaxError: 1.1e-05, Cases: 9},
			Original: rope.Attention{
				Heads: 4, KVHeads: 2, HeadSize: 16, Scale: 0.3, Softcap: 30, Chunk: 7, Cache: rope.Raw, Cross: true,
				Temperature: rope.Temperature{Offset: 1, Slope: 0.1, Start: 1, Group: 8},
				Encoding: rope.Encoding{Frequencies: []float64{1, 0.1, 1.0 / 3}, Axes: []int{0, 2, 1}, Gain: 1.1, Layout: rope.Interleaved, Offset: 2, ExactAngles: true, Precision: rope.BFloat16,
					LengthDependent: rope.LengthDependent{Trained: 64, Long: []float64{1, 2, 3}, NTK: 2, Linear: true}},
				Bands:    []rope.Band{{}, {Start: 9, QueryScale: 1, QueryOffset: -3, KeyScale: 1, QueryLimit: 5, Group: 2}},
				Drawn:    rope.Drawn{Range: 100, Seed: 3},
				Distance: rope.Distance{Slopes: []float64{0.5, 0.1}, Starts: []int64{-1, 0}, Biases: [][]float64{{1, 2}, {1.0 / 3, 4}}, Shown: true},
				Mask:     rope.Mask{Causal: true, Window: 9, FirstKeys: 4, Padding: true, Bias: true, Documents: rope.AnchorDocument, Restart: true, Start: 1},
			},
		}},
		ProvenWith:  &provenance.Runtime{Version: "1.31.1", Provider: "CUDA"},
		Kept:        []provenance.Kept{{Layer: 2, Node: "e", Op: "Softmax", Reason: "why"}},
		AddedInputs: []string{"cache_length"}, AddedOutputs: []string{"present.0.key_scale"},
		Buffers: []provenance.Buffer{{Param: "past", Type: "float", Values: []string{"past.0.key"}}, {Value: -1, Values: []string{"past.1.key"}}},
	}
}

// What is written is read back, every field of it.
func TestReadBack(t *testing.T) {
	m := onnx.New()
	want := full()
	if err := provenance.Write(m, want); err != nil {
		t.Fatal(err)
	}
	got, err := provenance.Read(m)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read back:\n%+v\nwant\n%+v", got, want)
	}
	if unset := unset(reflect.ValueOf(*want), "Record"); len(unset) > 0 {
		t.Errorf("the test sets no %s", strings.Join(unset, ", "))
	}
}

// unset names the fields that the test leaves at their zero value everywhere.
func unset(v reflect.Value, path string) (names []string) {
	for i := range v.NumField() {
		f, name := v.Field(i), path+"."+v.Type().Field(i).Name
		switch {
		case v.Type().Field(i).Tag.Get("json") == "-":
		case f.IsZero() && !strings.HasSuffix(name, "RotationOnly") && !strings.HasSuffix(name, "Site.Reason"):
			names = append(names, name)
		case f.Kind() == reflect.Struct && f.NumField() > 0 && f.Type().PkgPath() != "":
			names = append(names, unset(f, name)...)
		case name == "Record.Sites":
			names = append(names, unset(f.Index(0), "Site")...)
		}
	}
	return names
}
