package signature_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/signature"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// What three tokens at once are to a model, and its first empty cache.
func Example() {
	const folder = "../../testdata/models/llama__optimum"
	m, err := onnx.Open(folder + "/model.onnx")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	s, err := signature.Read(m, folder)
	if err != nil {
		fmt.Println(err)
		return
	}
	call := signature.Call{Batch: 1, Length: 3, IDs: []int64{7, 8, 9}, Positions: []int64{0, 1, 2}, Mask: []int64{1, 1, 1}}
	for _, in := range s.Inputs {
		if in.Role != signature.Past {
			values, dims := call.Feed(in)
			fmt.Println(in.Name, values, dims)
		}
	}
	first := s.Caches[0]
	fmt.Println(len(s.Caches), "caches;", first.Past, first.Dims(1), "goes on as", first.Present)
	fmt.Println(s.Logits, "over", s.Vocabulary, "tokens")
	// Output:
	// input_ids [7 8 9] [1 3]
	// attention_mask [1 1 1] [1 3]
	// position_ids [0 1 2] [1 3]
	// 4 caches; past_key_values.0.key [1 2 0 16] goes on as present.0.key
	// logits over 128 tokens
}
