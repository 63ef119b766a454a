package modelfolder_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/modelfolder"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

func ExamplePrepare() {
	yarn, err := rope.ParseSpec(rope.ScalingAxis, "yarn:factor=4")
	if err != nil {
		fmt.Println(err)
		return
	}
	folder, err := modelfolder.Prepare(context.Background(), "../../../testdata/models/llama__dynamo18", rewrite.Options{
		Edits:      []rope.Spec{yarn},
		Evaluation: rewrite.Evaluation{Worker: []string{os.Args[0]}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer folder.Close()
	home, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(home)
	if err := folder.Write(context.Background(), filepath.Join(home, "long"), modelfolder.WriteOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range folder.Files {
		fmt.Println(f.Path, f.What, f.Changes)
	}
	// Output:
	// config.json configured [max_position_embeddings 64 → 256 rope_parameters {"rope_theta":10000.0, "rope_type":"default"} → {"rope_type":"yarn", "factor":4, "original_max_position_embeddings":64, "rope_theta":10000}]
	// model.onnx rewritten []
	// rope_rewrite.json added []
}
