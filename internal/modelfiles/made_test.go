package modelfiles

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/links"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
)

// model is one whose graph has a name.
func model(graph string) *onnx.Model {
	m := onnx.New()
	m.RequireIR(8)
	m.RequireOpset("", 17)
	m.Graph.Name = graph
	m.Graph.AddInput(onnx.NewValueInfo("x", onnx.Float))
	m.Graph.AddOutput(onnx.NewValueInfo("x", onnx.Float))
	return m
}

// madeFrom is one whose record says that it was made from such a model.
func madeFrom(t *testing.T, graph string) *onnx.Model {
	t.Helper()
	sum := model(graph).Digest()
	m := model("new")
	if err := provenance.Write(m, &provenance.Record{Tool: "test", Target: "ops", Graph: hex.EncodeToString(sum[:])}); err != nil {
		t.Fatal(err)
	}
	return m
}

func save(t *testing.T, folder string, models map[string]*onnx.Model) {
	t.Helper()
	for name, m := range models {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := m.Save(path, onnx.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// A model is apart where the one that its record names lies beside it, under whatever name.
func TestApart(t *testing.T) {
	folder := t.TempDir()
	damaged := madeFrom(t, "a")
	damaged.SetMetadata(provenance.Key, "{")
	save(t, folder, map[string]*onnx.Model{
		"a.onnx": model("a"), "b.onnx": model("b"),
		"long.onnx": madeFrom(t, "a"), "longer.onnx": madeFrom(t, "a"), // both from a.onnx
		"foreign.onnx": madeFrom(t, "c"), "damaged.onnx": damaged,
		"sub/long.onnx": madeFrom(t, "a"), "sub/b.onnx": model("b"), // a.onnx is not beside it
		"alone/long.onnx": madeFrom(t, "a"),
	})
	if err := os.WriteFile(filepath.Join(folder, "text.onnx"), []byte("text"), 0o666); err != nil {
		t.Fatal(err)
	}
	paths, made, err := List(folder)
	if err != nil {
		t.Fatal(err)
	}
	in := func(names ...string) (list []string) {
		for _, name := range names {
			list = append(list, filepath.Join(folder, name))
		}
		return list
	}
	if want := in("a.onnx", "alone/long.onnx", "b.onnx", "damaged.onnx", "foreign.onnx", "sub/b.onnx", "sub/long.onnx", "text.onnx"); !slices.Equal(paths, want) {
		t.Errorf("originals %q, want %q", paths, want)
	}
	from := filepath.Join(folder, "a.onnx")
	if want := []Made{{in("long.onnx")[0], from}, {in("longer.onnx")[0], from}}; !slices.Equal(made, want) {
		t.Errorf("made %q, want %q", made, want)
	}
}

// A link out of the folder is not opened: what it leads to says nothing of the models here.
func TestApartLinks(t *testing.T) {
	home := t.TempDir()
	save(t, home, map[string]*onnx.Model{"a.onnx": model("a"), "folder/long.onnx": madeFrom(t, "a")})
	folder := filepath.Join(home, "folder")
	if err := os.Symlink("../a.onnx", filepath.Join(folder, "a.onnx")); err != nil {
		t.Fatal(err)
	}
	names := []string{"a.onnx", "long.onnx"}
	if got, made := Apart(links.Folder{Path: folder}, names); !slices.Equal(got, names) || made != nil {
		t.Errorf("%q, %q", got, made)
	}
	if got, made := Apart(links.Folder{Path: folder, Follow: true}, names); !slices.Equal(got, names[:1]) || len(made) != 1 {
		t.Errorf("with Follow: %q, %q", got, made)
	}
}
