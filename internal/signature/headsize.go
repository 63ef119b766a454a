package signature

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// headSize finds the last dimension of a cache input that leaves it open, as
// ONNX Runtime GenAI's builder does: the graph is asked first, then config.json.
func headSize(g *onnx.Graph, past, folder string) (int64, error) {
	if size := headSizeInGraph(g, past); size > 0 {
		return size, nil
	}
	size, err := headSizeInConfig(filepath.Join(folder, "config.json"))
	if errors.Is(err, fs.ErrNotExist) { // model hubs have it above the folder onnx
		if above, failed := headSizeInConfig(filepath.Join(folder, "..", "config.json")); !errors.Is(failed, fs.ErrNotExist) {
			size, err = above, failed
		}
	}
	if err != nil {
		return 0, fmt.Errorf("the graph does not say it elsewhere: %w", err)
	}
	return size, nil
}

// headSizeInGraph takes it from the heads of the attention that reads the cache
// and the declared width of what comes out of it; 0 when the graph does not
// tell.
func headSizeInGraph(g *onnx.Graph, past string) int64 {
	reader := func(value string) *onnx.Node {
		i := slices.IndexFunc(g.Nodes, func(n *onnx.Node) bool { return slices.Contains(n.Inputs, value) })
		if i < 0 {
			return nil
		}
		return g.Nodes[i]
	}
	n := reader(past)
	if n == nil || n.Int("num_heads", 0) < 1 {
		return 0
	}
	heads := n.Int("num_heads", 0)
	for range 3 { // a Transpose and a Reshape may follow
		if n == nil || len(n.Outputs) == 0 {
			return 0
		}
		for _, v := range g.ValueInfo {
			if v.Name == n.Outputs[0] && len(v.Shape) == 3 && v.Shape[2].Known() {
				return v.Shape[2].Value / heads
			}
		}
		n = reader(n.Outputs[0])
	}
	return 0
}

// headSizeInConfig reads it from a model's config.json.
func headSizeInConfig(path string) (int64, error) {
	b, err := configfile.ReadBeside(path, configfile.Config)
	if err != nil {
		return 0, err
	}
	var config struct {
		Head   int64 `json:"head_dim"`
		Hidden int64 `json:"hidden_size"`
		Heads  int64 `json:"num_attention_heads"`
	}
	if err := json.Unmarshal(b, &config); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	if config.Head == 0 && config.Heads > 0 {
		config.Head = config.Hidden / config.Heads
	}
	if config.Head <= 0 {
		return 0, fmt.Errorf("%s has neither head_dim nor hidden_size and num_attention_heads", path)
	}
	return config.Head, nil
}
