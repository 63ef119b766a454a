package audit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/audit"
)

// A proportional rotation is compared with what config.json claims of it, by types of layers as Gemma 4's
// has them, with the layer's own head size.
func TestProportional(t *testing.T) {
	t.Parallel()
	graph, err := os.ReadFile(filepath.Join(testdata, "tables", "proportional.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	const config = `{"num_hidden_layers": 1, "layer_types": ["full_attention"], "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": %d, "per_layer_config": {"0": {"head_dim": 16}},
		"rope_parameters": {"full_attention": {"rope_type": "%s", "partial_rotary_factor": %g, "rope_theta": %g}, "sliding_attention": {"rope_type": "default", "rope_theta": 1000}}}`
	for name, c := range map[string]struct {
		text    string
		differs []string
	}{
		"as the graph is": {fmt.Sprintf(config, 8, "proportional", 0.375, 1e4), []string{}},
		"another share":   {fmt.Sprintf(config, 16, "proportional", 0.25, 1e4), []string{"rope_scaling 0: proportional:partial_rotary_factor=0.25, 3 of 8 pairs turn"}},
		"another base":    {fmt.Sprintf(config, 16, "proportional", 0.375, 1e6), []string{"rope_theta 0: 1000000, 10000"}},
		"all pairs":       {fmt.Sprintf(config, 16, "default", 1.0, 1e4), []string{"rope_scaling 0: none, 3 of 8 pairs turn"}},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "model.onnx")
		for file, data := range map[string][]byte{path: graph, filepath.Join(dir, "config.json"): []byte(c.text)} {
			if err := os.WriteFile(file, data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if got := verdicts(run(t, path), audit.Differs); !slices.Equal(got, c.differs) {
			t.Errorf("%s: differs %q, want %q", name, got, c.differs)
		}
	}
}
