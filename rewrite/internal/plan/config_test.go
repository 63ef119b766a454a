package plan

import (
	"os"
	"path/filepath"
	"testing"
)

// The trained length stands beside the parameters of the rotation, among them,
// or, as Phi-3 has it, in the configuration itself.
func TestConfigTrainedLength(t *testing.T) {
	for text, want := range map[string]int64{
		`{"max_position_embeddings": 131072}`: 131072,
		`{"max_position_embeddings": 131072, "original_max_position_embeddings": 4096, "rope_scaling": {"type": "longrope"}}`:              4096,
		`{"max_position_embeddings": 131072, "rope_parameters": {"rope_type": "yarn", "original_max_position_embeddings": 8192}}`:          8192,
		`{"max_position_embeddings": 131072, "rope_scaling": {"type": "yarn", "original_max_position_embeddings": 8192}, "rope_theta": 5}`: 8192,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := ReadConfig(filepath.Join(dir, "model.onnx"), nil, false).Original; got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
