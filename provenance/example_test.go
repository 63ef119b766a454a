package provenance_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

func Example() {
	m := onnx.New()
	if _, err := provenance.Read(m); err != nil {
		fmt.Println(err)
	}
	err := provenance.Write(m, &provenance.Record{
		Tool: "0.1.0", Target: "ops",
		Edits: []provenance.Edit{{What: "scaling", Given: "linear", Layers: []int{0}, Settings: []rope.Setting{
			{Name: "factor", Value: rope.Number(2), From: rope.FromContext},
		}}},
		Sites: []provenance.Site{{Layers: []int{0}, Nodes: []string{"Softmax_12"}, Original: rope.Attention{Heads: 8, KVHeads: 2}}},
	})
	if err != nil {
		fmt.Println(err)
	}
	record, err := provenance.Read(m)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, edit := range record.Edits {
		for _, s := range edit.Settings {
			fmt.Println(edit, s.Name, s.Value, s.From)
		}
	}
	// Output:
	// the model has no record of a rewrite
	// scaling linear factor 2 context
}
