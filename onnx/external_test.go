package onnx_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

// outside returns a model of one float32 weight [2] in external data; pairs
// are the keys and values of external_data.
func outside(pairs ...string) []byte {
	place := onnxpb.TensorProto_EXTERNAL
	w := &onnxpb.TensorProto{Name: proto.String("w"), DataType: proto.Int32(1), Dims: []int64{2}, DataLocation: &place}
	for i := 0; i < len(pairs); i += 2 {
		w.ExternalData = append(w.ExternalData, &onnxpb.StringStringEntryProto{Key: &pairs[i], Value: &pairs[i+1]})
	}
	m := smallModel()
	m.Graph.Initializer = []*onnxpb.TensorProto{w}
	return message(m)
}

func write(t testing.TB, path string, data []byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func link(t testing.TB, target, path string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Skip("this system does not let the test make links: ", err)
	}
	return path
}

func TestExternalContents(t *testing.T) {
	data := []byte("0123456789abcdef")
	for name, c := range map[string]struct {
		pairs []string
		want  string // contents, or what the error says
		fails bool
	}{
		"from the start":  {[]string{"location", "w.bin"}, "01234567", false},
		"offset":          {[]string{"location", "w.bin", "offset", "4", "length", "8"}, "456789ab", false},
		"at the end":      {[]string{"location", "w.bin", "offset", "8"}, "89abcdef", false},
		"length 0":        {[]string{"location", "w.bin", "length", "0"}, "01234567", false},
		"sub-folder":      {[]string{"location", "sub/w.bin"}, "01234567", false},
		"other keys":      {[]string{"checksum", "x", "location", "w.bin", "future", "y"}, "01234567", false},
		"too short":       {[]string{"location", "w.bin", "offset", "9"}, "too few", true},
		"offset overflow": {[]string{"location", "w.bin", "offset", "9223372036854775807"}, "too few", true},
		"wrong length":    {[]string{"location", "w.bin", "length", "4"}, "external data has 4 bytes", true},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "w.bin"), data)
		write(t, filepath.Join(dir, "sub", "w.bin"), data)
		m := open(t, write(t, filepath.Join(dir, "m.onnx"), outside(c.pairs...)))
		got, err := m.Graph.Initializers[0].Bytes()
		if c.fails {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v, want one that says %q", name, err, c.want)
			}
		} else if err != nil || string(got) != c.want {
			t.Errorf("%s: %q (%v), want %q", name, got, err, c.want)
		}
	}
}

func TestExternalEntriesThatMakeNoSense(t *testing.T) {
	for _, pairs := range [][]string{
		{"offset", "0"}, {"location", "w", "offset", "x"}, {"location", "w", "length", "-1"},
		{"location", "w", "offset", "99999999999999999999"},
	} {
		if _, err := onnx.Parse(outside(pairs...)); !errors.Is(err, onnx.ErrFormat) || !strings.Contains(err.Error(), `initializer "w"`) {
			t.Errorf("%v: %v", pairs, err)
		}
	}
}

func TestLocationsThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	secret := write(t, filepath.Join(dir, "secret"), []byte("01234567"))
	write(t, filepath.Join(dir, "model", "w.bin"), []byte("01234567"))
	link(t, secret, filepath.Join(dir, "model", "leads-out"))
	link(t, dir, filepath.Join(dir, "model", "folder-out"))
	link(t, "w.bin", filepath.Join(dir, "model", "stays-in"))
	if err := os.Mkdir(filepath.Join(dir, "model", "folder"), 0o777); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 100_000)
	for location, want := range map[string]string{
		"../secret":         `holds ".."`,
		"folder/../w.bin":   `holds ".."`,
		`..\secret`:         `holds ".."`,
		secret:              "is an absolute path",
		`\secret`:           "is an absolute path",
		"w.bin\x00":         "holds a NUL byte",
		long:                "has 100000 bytes, more than the 4096 of a path",
		"leads-out":         "leads outside",
		"folder-out/secret": "leads outside",
		"folder":            "not a regular file",
		".":                 "not a regular file",
		"stays-in":          "",
		"./w.bin":           "",
	} {
		m := open(t, write(t, filepath.Join(dir, "model", "m.onnx"), outside("location", location)))
		_, err := m.Graph.Initializers[0].Bytes()
		if want == "" {
			if err != nil {
				t.Errorf("%q: %v", location, err)
			}
			continue
		}
		if !errors.Is(err, onnx.ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want a refusal that says %q", location, err, want)
		} else if len(err.Error()) > 1000 {
			t.Errorf("the refusal has %d bytes", len(err.Error()))
		}
		elsewhere := filepath.Join(t.TempDir(), "out.onnx")
		if err := m.Save(elsewhere, onnx.SaveOptions{Force: true}); !errors.Is(err, onnx.ErrRefused) {
			t.Errorf("saving with %q: %v", location, err)
		}
		if _, err := os.Stat(elsewhere); err == nil {
			t.Errorf("a model with location %q was saved", location)
		}
	}
}

// A model that the user names may be a link: its data then lies beside the file or beside the link. One that somebody
// else named has its data beside the name alone.
func TestModelThatIsALink(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, "mine", "m.onnx"), outside("location", "w.bin"))
	write(t, filepath.Join(home, "mine", "w.bin"), []byte("01234567"))
	path := link(t, "../mine/m.onnx", filepath.Join(home, "strange", "m.onnx"))
	link(t, "../mine/w.bin", filepath.Join(home, "strange", "w.bin"))
	if got, err := open(t, path).Graph.Initializers[0].Bytes(); err != nil || string(got) != "01234567" {
		t.Errorf("%q, %v", got, err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.OpenFile(file, path)
	if err = errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if got, err := m.Graph.Initializers[0].Bytes(); !errors.Is(err, onnx.ErrRefused) {
		t.Errorf("named by somebody else: %q, %v", got, err)
	}
	// The link may lead elsewhere by the time that the data is looked for.
	m = open(t, path)
	if err := errors.Join(os.Remove(path), os.Remove(filepath.Join(home, "strange", "w.bin"))); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(home, "private", "w.bin"), []byte("private!"))
	link(t, "../private/w.bin", path)
	link(t, "../private/w.bin", filepath.Join(home, "strange", "w.bin"))
	if got, err := m.Graph.Initializers[0].Bytes(); !errors.Is(err, onnx.ErrRefused) {
		t.Errorf("a link that was changed: %q, %v", got, err)
	}
}

// The Hugging Face cache holds files by hash in blobs/, and a folder of links
// to them under their names.
func TestHuggingFaceCache(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "blobs", "aaa"), outside("location", "m.onnx_data"))
	write(t, filepath.Join(dir, "blobs", "bbb"), []byte("01234567"))
	write(t, filepath.Join(dir, "secret"), []byte("01234567"))
	path := link(t, "../../../blobs/aaa", filepath.Join(dir, "snapshots", "rev", "onnx", "m.onnx"))
	data := link(t, "../../../blobs/bbb", filepath.Join(dir, "snapshots", "rev", "onnx", "m.onnx_data"))
	m := open(t, path)
	got, err := m.Graph.Initializers[0].Bytes()
	if err != nil || string(got) != "01234567" {
		t.Errorf("%q, %v", got, err)
	}
	// Saved elsewhere, the data is a file, not a link into the cache.
	out := filepath.Join(t.TempDir(), "out.onnx")
	if err := m.Save(out, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(filepath.Join(filepath.Dir(out), "m.onnx_data")); err != nil || !info.Mode().IsRegular() {
		t.Errorf("data beside the output: %v, %v", info, err)
	}
	// The output over the blob itself, through the snapshot's link, is refused.
	for _, own := range []string{path, data, filepath.Join(dir, "blobs", "bbb")} {
		if err := m.Save(own, onnx.SaveOptions{Force: true}); !errors.Is(err, onnx.ErrRefused) {
			t.Errorf("saving over %s: %v", own, err)
		}
	}
	// A link to anywhere else stays refused.
	if err := os.Remove(data); err != nil {
		t.Fatal(err)
	}
	link(t, "../../../secret", data)
	if _, err := open(t, path).Graph.Initializers[0].Bytes(); !errors.Is(err, onnx.ErrRefused) {
		t.Errorf("a link out of the cache: %v", err)
	}
}

func TestMissingDataOnlyMattersWhenItIsNeeded(t *testing.T) {
	dir := t.TempDir()
	m := open(t, write(t, filepath.Join(dir, "m.onnx"), outside("location", "gone.bin")))
	if _, err := m.Graph.Initializers[0].Bytes(); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "gone.bin") {
		t.Errorf("contents: %v", err)
	}
	if err := m.Save(filepath.Join(dir, "out.onnx"), onnx.SaveOptions{}); err != nil {
		t.Errorf("saving beside the model: %v", err)
	}
	if err := m.Save(filepath.Join(t.TempDir(), "out.onnx"), onnx.SaveOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("saving elsewhere: %v", err)
	}
	m.Graph.RemoveInitializers(func(*onnx.Tensor) bool { return true })
	if err := m.Save(filepath.Join(t.TempDir(), "out.onnx"), onnx.SaveOptions{}); err != nil {
		t.Errorf("saving without the tensor: %v", err)
	}
	parsed, err := onnx.Parse(outside("location", "w.bin"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parsed.Graph.Initializers[0].Bytes(); err == nil || !strings.Contains(err.Error(), "folder is unknown") {
		t.Errorf("contents of a model in memory: %v", err)
	}
}

// Weights are copied: as long as a file has two names, other readers refuse the original (Python's onnx from 1.23 on).
// Links are made where they are asked for, and a forced save takes one away.
func TestCopiedOrLinked(t *testing.T) {
	dir := t.TempDir()
	data := write(t, filepath.Join(dir, "w.bin"), []byte("01234567"))
	m := open(t, write(t, filepath.Join(dir, "m.onnx"), outside("location", "w.bin")))
	there, other := t.TempDir(), t.TempDir()
	for i, c := range []struct {
		folder string
		opts   onnx.SaveOptions
		want   onnx.Placement
		linked bool
	}{
		{there, onnx.SaveOptions{}, onnx.Copied, false},
		{there, onnx.SaveOptions{Force: true}, "", false}, // the same data is there
		{other, onnx.SaveOptions{Link: true}, onnx.Linked, true},
		{other, onnx.SaveOptions{Link: true, Force: true}, onnx.Linked, true},
		{other, onnx.SaveOptions{}, onnx.Linked, true}, // nothing is replaced unasked
		{other, onnx.SaveOptions{Force: true}, onnx.Copied, false},
		{dir, onnx.SaveOptions{}, "", false}, // its own folder
	} {
		if !c.opts.Force {
			os.Remove(filepath.Join(c.folder, "out.onnx"))
		}
		var got []onnx.PlacedFile
		c.opts.Placed = func(file onnx.PlacedFile) {
			if file.How == onnx.Cloned { // by the file system of this machine
				file.How = onnx.Copied
			}
			got = append(got, file)
		}
		var want []onnx.PlacedFile
		placed := filepath.Join(c.folder, "w.bin")
		if c.want != "" {
			want = []onnx.PlacedFile{{Path: placed, How: c.want, Bytes: 8}}
		}
		if err := m.Save(filepath.Join(c.folder, "out.onnx"), c.opts); err != nil || !slices.Equal(got, want) {
			t.Errorf("%d: placed %v, %v; want %v", i, got, err, want)
		}
		if c.folder != dir && sameFile(t, data, placed) != c.linked {
			t.Errorf("%d: one file: %v", i, !c.linked)
		}
		if b, err := os.ReadFile(placed); err != nil || string(b) != "01234567" {
			t.Errorf("%d: the data is %q, %v", i, b, err)
		}
	}
}

func TestDataIsPlacedBesideTheOutput(t *testing.T) {
	dir := t.TempDir()
	data := write(t, filepath.Join(dir, "model", "sub", "w.bin"), []byte("01234567"))
	m := open(t, write(t, filepath.Join(dir, "model", "m.onnx"), outside("location", "sub/w.bin")))

	out := filepath.Join(dir, "other", "out.onnx")
	if err := os.Mkdir(filepath.Dir(out), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := m.Save(out, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	if b, err := open(t, out).Graph.Initializers[0].Bytes(); err != nil || string(b) != "01234567" {
		t.Errorf("%q, %v", b, err)
	}
	// The same data in the way is fine; other data is not.
	if err := m.Save(out, onnx.SaveOptions{Force: true}); err != nil {
		t.Errorf("again: %v", err)
	}
	for _, there := range []string{"01234567", "different", "76543210"} {
		folder := t.TempDir()
		place := write(t, filepath.Join(folder, "sub", "w.bin"), []byte(there))
		out := filepath.Join(folder, "out.onnx")
		err := m.Save(out, onnx.SaveOptions{})
		if there == "01234567" {
			if err != nil {
				t.Errorf("over equal data: %v", err)
			}
			continue
		}
		if !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "choose another folder") {
			t.Errorf("over other data: %v", err)
		}
		if b, err := os.ReadFile(place); err != nil || string(b) != there {
			t.Errorf("the other data became %q, %v", b, err)
		}
		if _, err := os.Stat(out); err == nil {
			t.Error("the model was saved without its data")
		}
		if err := m.Save(out, onnx.SaveOptions{Force: true}); err != nil {
			t.Errorf("forced: %v", err)
		}
		if b, err := os.ReadFile(place); err != nil || string(b) != "01234567" {
			t.Errorf("forced, the data is %q, %v", b, err)
		}
	}
	if b, err := os.ReadFile(data); err != nil || string(b) != "01234567" {
		t.Errorf("the original data is %q, %v", b, err)
	}
	// A link in the output's folder must not lead the data out of it.
	trap := t.TempDir()
	link(t, t.TempDir(), filepath.Join(trap, "sub"))
	if err := m.Save(filepath.Join(trap, "out.onnx"), onnx.SaveOptions{Force: true}); err == nil {
		t.Error("data was written through a link out of the output's folder")
	}
	if err := m.Save(filepath.Join(t.TempDir(), "sub", "w.bin"), onnx.SaveOptions{}); err == nil {
		t.Error("saved to a folder that does not exist")
	}
}

func TestOutputNamedLikeTheData(t *testing.T) {
	dir := t.TempDir()
	data := write(t, filepath.Join(dir, "w.bin"), []byte("01234567"))
	m := open(t, write(t, filepath.Join(dir, "m.onnx"), outside("location", "w.bin")))
	for _, path := range []string{data, filepath.Join(t.TempDir(), "w.bin")} {
		if err := m.Save(path, onnx.SaveOptions{Force: true}); !errors.Is(err, onnx.ErrRefused) {
			t.Errorf("saving to %s: %v", path, err)
		}
	}
	m.Graph.RemoveInitializers(func(*onnx.Tensor) bool { return true })
	if err := m.Save(data, onnx.SaveOptions{Force: true}); !errors.Is(err, onnx.ErrRefused) {
		t.Errorf("saving over data that is no longer used: %v", err)
	}
	if b, err := os.ReadFile(data); err != nil || string(b) != "01234567" {
		t.Errorf("the data is %q, %v", b, err)
	}
}

// Tensors of one model may be put into another.
func TestTensorsOfTwoFolders(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	write(t, filepath.Join(a, "w.bin"), []byte("aaaaaaaa"))
	write(t, filepath.Join(b, "w.bin"), []byte("bbbbbbbb"))
	first := open(t, write(t, filepath.Join(a, "m.onnx"), outside("location", "w.bin")))
	second := open(t, write(t, filepath.Join(b, "m.onnx"), outside("location", "w.bin")))
	piece := onnx.New()
	piece.Graph.AddInitializer(second.Graph.Initializers[0])
	out := filepath.Join(t.TempDir(), "piece.onnx")
	if err := piece.Save(out, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := open(t, out).Graph.Initializers[0].Bytes(); err != nil || !bytes.Equal(got, []byte("bbbbbbbb")) {
		t.Errorf("%q, %v", got, err)
	}
	piece.Graph.AddInitializer(first.Graph.Initializers[0])
	if err := piece.Save(filepath.Join(t.TempDir(), "piece.onnx"), onnx.SaveOptions{Force: true}); err == nil || !strings.Contains(err.Error(), "overwrite each other") {
		t.Errorf("two files of one name: %v", err)
	}
}

func sameFile(t testing.TB, a, b string) bool {
	t.Helper()
	x, err := os.Stat(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.Stat(b)
	if err != nil {
		t.Fatal(err)
	}
	return os.SameFile(x, y)
}

// Between file systems data cannot be linked, so it is copied.
func TestDataIsCopiedToAnotherFileSystem(t *testing.T) {
	there, err := os.MkdirTemp("/dev/shm", "onnx-test")
	if err != nil {
		t.Skip("no second file system at /dev/shm: ", err)
	}
	t.Cleanup(func() { os.RemoveAll(there) })
	dir := t.TempDir()
	data := write(t, filepath.Join(dir, "w.bin"), []byte("01234567"))
	if os.Link(data, filepath.Join(there, "probe")) == nil {
		t.Skip("/dev/shm is on the file system of the temporary folder")
	}
	m := open(t, write(t, filepath.Join(dir, "m.onnx"), outside("location", "w.bin")))
	if err := m.Save(filepath.Join(there, "out.onnx"), onnx.SaveOptions{Link: true}); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(there, "w.bin")); err != nil || string(b) != "01234567" {
		t.Errorf("%q, %v", b, err)
	}
	if sameFile(t, data, filepath.Join(there, "w.bin")) || names(t, there) != "out.onnx w.bin" {
		t.Errorf("the folder holds %s", names(t, there))
	}
	stop := errors.New("stop")
	if err := m.Save(filepath.Join(there, "other.onnx"), onnx.SaveOptions{Force: true, Progress: func(int64, int64) error { return stop }}); !errors.Is(err, stop) {
		t.Errorf("stopped: %v", err)
	}
	if names(t, there) != "out.onnx w.bin" {
		t.Errorf("after a stopped save the folder holds %s", names(t, there))
	}
}
