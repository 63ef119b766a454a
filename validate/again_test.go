package validate

import (
	"reflect"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// What a record asks for, as options.
func TestAgain(t *testing.T) {
	set := func(name string, v rope.Value, from rope.Source) rope.Setting {
		return rope.Setting{Name: name, Value: v, From: from}
	}
	scaling := provenance.Edit{What: "scaling", Given: "yarn:factor=4", Layers: []int{0, 2}, Settings: []rope.Setting{
		set("factor", rope.Number(4), rope.Given),
		set("original_max_position_embeddings", rope.Integer(32), rope.Configuration),
		set("beta_fast", rope.Number(32), rope.Default),
	}}
	window := provenance.Edit{What: "mask", Given: "sliding-window:window=8", Layers: []int{2}, Settings: []rope.Setting{set("window", rope.Integer(8), rope.Given)}}
	r := &provenance.Record{
		Target: "contrib:onnxruntime=1.22", Configuration: provenance.Configuration{Context: 256, Trained: 32},
		Sites: []provenance.Site{{Layers: []int{0, 2}, Original: rope.Attention{Encoding: rope.Encoding{Frequencies: []float64{1}}}}}, Kept: []provenance.Kept{{Layer: 1}},
		Edits: []provenance.Edit{scaling, window, {What: "angles", Given: "exact", Layers: []int{0, 2}}, {What: "cache", Given: "raw", Layers: []int{0, 2}}, {What: "precision", Given: "fast"}, {What: "opset", Given: "18"},
			{What: "documents", Given: "separator:3,ends", Settings: []rope.Setting{set("token", rope.Integer(3), rope.Given)}},
			{What: "kv", Given: "fixed:capacity=64,input=n", Settings: []rope.Setting{set("capacity", rope.Integer(64), rope.Given), set("input", rope.Text("n"), rope.Given)}},
			{What: "logits", Given: "last:input=at", Settings: []rope.Setting{set("input", rope.Text("at"), rope.Given)}},
		},
	}
	o, err := again(r, rewrite.Options{Evaluation: rewrite.Evaluation{Library: "ops.so"}})
	if err != nil {
		t.Fatal(err)
	}
	// By layers, also where all have a method: a scaling for the whole model skips some.
	for i, want := range []string{"scaling yarn:factor=4,original_max_position_embeddings=32 on layers 0,2", "mask sliding-window:window=8 on layers 2"} {
		if e := o.LayerEdits[i]; e.String() != want || e.Layers(0) != (i == 0) || e.Layers(1) || !e.Layers(2) {
			t.Errorf("%v, want %s", e, want)
		}
	}
	if o.Layers == nil || !o.Layers(0) || o.Layers(1) || !o.Layers(2) {
		t.Error("other layers than those of the record are rewritten")
	}
	o.LayerEdits, o.Layers = nil, nil
	want := rewrite.Options{
		Evaluation:     rewrite.Evaluation{Library: "ops.so"},
		Target:         "contrib:onnxruntime=1.22",
		Context:        rope.Context{Length: 256},
		AllowUnchanged: true,
		Numerics:       rewrite.Numerics{Angles: "exact", Precision: "fast"},
		Cache:          rewrite.Cache{Raw: true, Capacity: 64, LengthInput: "n"},
		Output:         rewrite.Output{OperatorSet: 18},
		Documents:      rewrite.Documents{Separator: &rewrite.Separator{Token: 3, Ends: true}},
		LogitsPlaces:   "at",
	}
	if !reflect.DeepEqual(o, want) {
		t.Errorf("%+v, want %+v", o, want)
	}
	r.Edits = []provenance.Edit{{What: "documents", Given: "input:ids", Settings: []rope.Setting{set("input", rope.Text("ids"), rope.Given)}}}
	if o, err = again(r, rewrite.Options{}); err != nil || o.Documents.Input != "ids" || o.Documents.Separator != nil {
		t.Errorf("an input of documents: %v, %+v", err, o)
	}
	r.Edits = []provenance.Edit{{What: "cache", Given: "raw", Layers: []int{2}}, {What: "angles", Given: "exact", Layers: []int{0}}}
	if o, err = again(r, rewrite.Options{}); err != nil || o.Cache.Raw || o.Numerics.Angles == "exact" {
		t.Errorf("what a method brought along for some layers: %v, %+v", err, o)
	}
	r.Edits = []provenance.Edit{{What: "telepathy"}}
	if _, err = again(r, rewrite.Options{}); err == nil {
		t.Error("an edit that is not known is left out")
	}
}
