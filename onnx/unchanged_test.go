package onnx_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

// withWeights writes a model with a name of its own and external data, and opens it.
func withWeights(t *testing.T, name string, weights []byte) *onnx.Model {
	t.Helper()
	dir := t.TempDir()
	m := smallModel()
	m.ProducerName = proto.String(name)
	entry := func(key, value string) *onnxpb.StringStringEntryProto {
		return &onnxpb.StringStringEntryProto{Key: proto.String(key), Value: proto.String(value)}
	}
	m.Graph.Initializer = []*onnxpb.TensorProto{{Name: proto.String("w"), DataType: proto.Int32(2), Dims: []int64{int64(len(weights))},
		DataLocation: onnxpb.TensorProto_EXTERNAL.Enum(), ExternalData: []*onnxpb.StringStringEntryProto{entry("location", "w.bin"), entry("length", fmt.Sprint(len(weights)))}}}
	write(t, filepath.Join(dir, "w.bin"), weights)
	return open(t, write(t, filepath.Join(dir, "m.onnx"), message(m)))
}

// Of saves to one file at the same time, one is there at the end, whole: its model beside its weights.
func TestSavesAtTheSameTime(t *testing.T) {
	weights := map[string][]byte{}
	var models []*onnx.Model
	for _, name := range []string{"first", "second", "third"} {
		weights[name] = bytes.Repeat([]byte(name), 1<<12)
		models = append(models, withWeights(t, name, weights[name]))
	}
	dir := t.TempDir()
	for range 50 {
		var wait sync.WaitGroup
		for _, m := range models {
			wait.Go(func() {
				err := m.Save(filepath.Join(dir, "m.onnx"), onnx.SaveOptions{Force: true})
				if err != nil && !strings.HasSuffix(err.Error(), "w.bin was changed by another program in the meantime; save again") {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		got := open(t, filepath.Join(dir, "m.onnx"))
		there, err := os.ReadFile(filepath.Join(dir, "w.bin"))
		if err != nil || !bytes.Equal(there, weights[got.ProducerName]) {
			t.Fatalf("the %s model stands beside the weights %.10q (%v)", got.ProducerName, there, err)
		}
		if list := names(t, dir); list != "m.onnx w.bin" {
			t.Fatalf("the folder holds %s", list)
		}
	}
}

// Weights that another program replaced while they were taken for the new model's own.
func TestWeightsThatChangeMeanwhile(t *testing.T) {
	m := withWeights(t, "a", []byte("weights"))
	from := filepath.Dir(m.Path)
	replace := func(dir string) func(int64, int64) error {
		return func(int64, int64) error {
			part := filepath.Join(dir, "part")
			return errors.Join(os.WriteFile(part, []byte("changed"), 0o666), os.Rename(part, filepath.Join(dir, "w.bin")))
		}
	}
	to := t.TempDir()
	write(t, filepath.Join(to, "w.bin"), []byte("weights"))
	err := m.Save(filepath.Join(to, "m.onnx"), onnx.SaveOptions{Progress: replace(to)})
	if err == nil || !strings.HasSuffix(err.Error(), "w.bin was changed by another program in the meantime; save again") {
		t.Errorf("beside the new model: %v", err)
	}
	if _, err := m.Graph.Initializers[0].Bytes(); err != nil { // from now on it is known what was read
		t.Fatal(err)
	}
	for name, to := range map[string]string{"in the model's folder": from, "in another": t.TempDir()} {
		write(t, filepath.Join(from, "w.bin"), []byte("weights"))
		m := open(t, m.Path)
		if _, err := m.Graph.Initializers[0].Bytes(); err != nil {
			t.Fatal(err)
		}
		err := m.Save(filepath.Join(to, "new.onnx"), onnx.SaveOptions{Progress: replace(from)})
		if err == nil || !strings.Contains(err.Error(), `external data "w.bin" was changed after it was read; open `) {
			t.Errorf("%s: %v", name, err)
		}
		if list := names(t, to); strings.Contains(list, "new.onnx") {
			t.Errorf("%s: the folder holds %s", name, list)
		}
	}
}

// Clocks are wrong, jump, and are set back: a model of any time is saved, and a change is seen although the time of the
// last write is that of before.
func TestClocks(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "m.onnx"), message(smallModel()))
	for i, at := range []time.Time{time.Unix(0, 0), time.Unix(-1, 0), time.Now().AddDate(100, 0, 0), time.Now()} {
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		if err := open(t, path).Save(filepath.Join(dir, fmt.Sprint(i)), onnx.SaveOptions{}); err != nil {
			t.Errorf("a model of %v: %v", at, err)
		}
	}
	m := open(t, path)
	if err := os.Link(path, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := m.Save(filepath.Join(dir, "linked"), onnx.SaveOptions{}); err != nil {
		t.Errorf("a link to it was made meanwhile: %v", err)
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux is asked when a file was touched")
	}
	m = open(t, path)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond) // some file systems count in ticks of the clock
	write(t, path, bytes.Repeat([]byte("x"), int(before.Size())))
	if err := os.Chtimes(path, before.ModTime(), before.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := m.Save(filepath.Join(dir, "changed"), onnx.SaveOptions{}); err == nil || !strings.HasSuffix(err.Error(), "was changed after it was opened; open it again") {
		t.Errorf("it was changed, and its time was set back: %v", err)
	}
}
