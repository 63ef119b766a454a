package modelfiles

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// folder has files of these names.
func folder(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPairs(t *testing.T) {
	a := folder(t, "model.onnx", "onnx/decoder.ONNX", "onnx/encoder.onnx", "config.json", ".cache/model.onnx")
	b := folder(t, "onnx/decoder.ONNX", "model.onnx", "onnx/other.onnx")
	pairs, alone, _, err := Pairs(a, b)
	if err != nil || !slices.Equal(pairs, []Pair{{a + "/model.onnx", b + "/model.onnx"}, {a + "/onnx/decoder.ONNX", b + "/onnx/decoder.ONNX"}}) {
		t.Errorf("%v, %v", pairs, err)
	}
	if !slices.Equal(alone, []string{a + "/onnx/encoder.onnx", b + "/onnx/other.onnx"}) {
		t.Errorf("alone: %q", alone)
	}
	one, other := folder(t, "model.onnx"), folder(t, "model.rope.onnx")
	if pairs, alone, _, err := Pairs(one, other); err != nil || alone != nil || !slices.Equal(pairs, []Pair{{one + "/model.onnx", other + "/model.rope.onnx"}}) {
		t.Errorf("one model each: %v, %q, %v", pairs, alone, err)
	}
	for _, c := range []struct{ a, b, want string }{
		{a, folder(t, "config.json"), "there is no .onnx file in"},
		{a, other, "no model of"},
	} {
		if _, _, _, err := Pairs(c.a, c.b); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// A link to a folder is that folder; a link to a model is not followed.
func TestListOfALink(t *testing.T) {
	home := folder(t, "real/onnx/model.onnx", "real/.cache/x.onnx")
	for name, to := range map[string]string{"link": "real", "real/again.onnx": "onnx/model.onnx"} {
		if err := os.Symlink(to, filepath.Join(home, name)); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(home, "link")
	if got, _, err := List(link); err != nil || !slices.Equal(got, []string{filepath.Join(link, "onnx", "model.onnx")}) {
		t.Errorf("%q, %v", got, err)
	}
}
