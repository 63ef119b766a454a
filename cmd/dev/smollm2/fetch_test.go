package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

// source makes a folder of one variant; its weights are seven threes.
func source(t *testing.T) *fetcher {
	t.Helper()
	f := &fetcher{source: t.TempDir(), out: t.TempDir(), inline: true, log: &bytes.Buffer{}}
	f.fill = func(_ context.Context, _, data string) error {
		return os.WriteFile(data, bytes.Repeat([]byte{0, 0, 0x40, 0x40}, 7), 0o644)
	}
	write := func(name, content string) {
		path := filepath.Join(f.source, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("config.json", `{"rope_parameters": {"rope_theta": 100000}}`)
	write("tokenizer.json", `{}`)
	write("generation_config.json", `{}`)
	write("tokenizer_config.json", `{}`)
	write("chat_template.jinja", `{{ messages }}`)
	write("goldens.npz", "not a part of the model")
	write("tiny/config.json", `{"rope_theta": 10000, "rope_parameters": {"rope_theta": 100000}}`)
	write("tiny/weights.json", `{"bytes": 28, "tensors": [[0, ["model.norm.weight"], false]]}`)
	write("tiny/model.onnx", tinyModel(t))
	return f
}

// tinyModel has one constant of seven numbers, stored in model.onnx.data.
func tinyModel(t *testing.T) string {
	t.Helper()
	b, err := proto.Marshal(&onnxpb.ModelProto{
		IrVersion: proto.Int64(8),
		Graph: &onnxpb.GraphProto{
			Initializer: []*onnxpb.TensorProto{{
				Name: proto.String("weight"), DataType: proto.Int32(int32(onnx.Float)), Dims: []int64{7},
				DataLocation: onnxpb.TensorProto_EXTERNAL.Enum(),
				ExternalData: []*onnxpb.StringStringEntryProto{
					{Key: proto.String("location"), Value: proto.String(dataFile)},
					{Key: proto.String("offset"), Value: proto.String("0")},
					{Key: proto.String("length"), Value: proto.String("28")},
				},
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestFetch(t *testing.T) {
	f := source(t)
	run := func() string {
		t.Helper()
		var log bytes.Buffer
		f.log = &log
		if err := f.run(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		return log.String()
	}
	if log := run(); !strings.Contains(log, "Writing") || !strings.Contains(log, "rope_theta 10000") {
		t.Errorf("first run: %s", log)
	}
	folder := filepath.Join(f.out, "tiny")
	config, err := os.ReadFile(filepath.Join(folder, "config.json"))
	if err != nil || !strings.Contains(string(config), "10000,") {
		t.Errorf("the variant's own config.json does not win: %s, %v", config, err)
	}
	var weights [2][]float32
	for i, name := range []string{graphFile, inlineFile} {
		model, err := onnx.Open(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		defer model.Close()
		tensor := model.Graph.Initializer("weight")
		if _, _, _, external := tensor.External(); external != (name == graphFile) {
			t.Errorf("%s: external %t", name, external)
		}
		if weights[i], err = tensor.Floats(); err != nil {
			t.Fatal(err)
		}
	}
	if len(weights[0]) != 7 || weights[0][0] != 3 || !slices.Equal(weights[0], weights[1]) {
		t.Errorf("weights %v", weights)
	}
	if log := run(); strings.Contains(log, "Writing") {
		t.Errorf("a second run wrote again: %s", log)
	}
	// A change of what it is made from makes it anew, other files stay.
	keep := filepath.Join(folder, "model.rope.onnx")
	if err := os.WriteFile(keep, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.source, "tokenizer.json"), []byte(`{"a": 1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if log := run(); !strings.Contains(log, "Writing") {
		t.Errorf("a changed tokenizer changed nothing: %s", log)
	}
	if _, err := os.Stat(keep); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "goldens.npz")); err == nil {
		t.Error("goldens.npz was copied to the model")
	}
	leftovers, err := filepath.Glob(filepath.Join(folder, ".*.*[0-9]"))
	if err != nil || len(leftovers) > 0 {
		t.Errorf("left over: %v, %v", leftovers, err)
	}
}

func TestFetchFailsWhole(t *testing.T) {
	f := source(t)
	f.fill = func(_ context.Context, weights, _ string) error { return fmt.Errorf("%s has no tensor none", weights) }
	if err := f.run(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "tiny/weights.json has no tensor none") {
		t.Errorf("a missing tensor: %v", err)
	}
	entries, err := os.ReadDir(filepath.Join(f.out, "tiny"))
	if err != nil || len(entries) > 0 {
		t.Errorf("left over: %v, %v", entries, err)
	}
	if err := f.run(context.Background(), []string{"other"}); err == nil || !strings.Contains(err.Error(), `"tiny"`) {
		t.Errorf("an unknown variant: %v", err)
	}
	f.source = t.TempDir()
	if err := f.run(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "root") {
		t.Errorf("no variant: %v", err)
	}
}

func TestThetaWarning(t *testing.T) {
	for config, want := range map[string]bool{
		`{"rope_theta": 10000, "rope_parameters": {"rope_theta": 100000}}`:  true,
		`{"rope_theta": 100000, "rope_parameters": {"rope_theta": 100000}}`: false,
		`{"rope_parameters": {"rope_theta": 100000}}`:                       false,
		`{"rope_theta": 10000}`: false,
		`{}`:                    false,
	} {
		path := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := thetaWarning(path); (got != "") != want {
			t.Errorf("%s: %q", config, got)
		}
	}
}
