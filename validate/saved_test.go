package validate_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/validate"
)

// savers save a file again as tools do.
func savers() map[string]func(t *testing.T, from, to string) {
	return map[string]func(t *testing.T, from, to string){
		"by a protobuf library": func(t *testing.T, from, to string) { saveMessage(t, message(t, from), to) },
		"with external data": func(t *testing.T, from, to string) {
			p, data := message(t, from), []byte{}
			for _, w := range p.GetGraph().GetInitializer() {
				if n := len(w.GetRawData()); n >= 1024 { // as Python's onnx does by default
					w.ExternalData = []*onnxpb.StringStringEntryProto{
						{Key: proto.String("location"), Value: proto.String(filepath.Base(to) + ".data")},
						{Key: proto.String("offset"), Value: proto.String(fmt.Sprint(len(data)))},
						{Key: proto.String("length"), Value: proto.String(fmt.Sprint(n))},
					}
					w.DataLocation = onnxpb.TensorProto_EXTERNAL.Enum()
					data, w.RawData = append(data, w.RawData...), nil
				}
			}
			if err := os.WriteFile(to+".data", data, 0o666); err != nil {
				t.Fatal(err)
			}
			saveMessage(t, p, to)
		},
		"by ONNX Runtime, disabled": func(t *testing.T, from, to string) { saveByRuntime(t, from, to, false) },
		"by ONNX Runtime, basic":    func(t *testing.T, from, to string) { saveByRuntime(t, from, to, true) },
	}
}

func message(t *testing.T, path string) *onnxpb.ModelProto {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(data, p); err != nil {
		t.Fatal(err)
	}
	return p
}

func saveMessage(t *testing.T, p *onnxpb.ModelProto, path string) {
	t.Helper()
	data, err := proto.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

func saveByRuntime(t *testing.T, from, to string, optimize bool) {
	t.Helper()
	runtime, library := testruntime.Paths(t)
	eng, err := engine.NewWorker(engine.Config{Runtime: runtime, Library: library}, os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	m, err := onnx.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	load := engine.Model{Path: from, Save: to, Optimize: optimize, Library: true}
	for _, v := range m.Graph.Inputs {
		load.Inputs = append(load.Inputs, v.Name)
	}
	for _, v := range m.Graph.Outputs {
		load.Outputs = append(load.Outputs, v.Name)
	}
	session, err := eng.Load(context.Background(), load)
	if err != nil {
		t.Fatal(err)
	}
	session.Close()
}

// Every test model, with a method and without, saved again by tools: the file is what its record says. Shape inference
// is Python's alone; make confirm-saved has it.
func TestSavedByTools(t *testing.T) {
	folders, err := filepath.Glob("../testdata/models/*/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	linear, err := rope.ParseSpec(rope.ScalingAxis, "linear:factor=2")
	if err != nil {
		t.Fatal(err)
	}
	for i, original := range testsample.Of(t, folders, 4) {
		name := filepath.Base(filepath.Dir(original))
		options := rewrite.Options{AllowUnchanged: true}
		if i%2 == 1 {
			options.Edits = []rope.Spec{linear}
		}
		m, err := onnx.Open(original)
		if err != nil {
			t.Fatal(err)
		}
		options.Evaluation.Runtime, options.Evaluation.Library = testruntime.Paths(t)
		options.Evaluation.Worker = []string{os.Args[0]}
		if _, err := rewrite.Rewrite(context.Background(), m, options); err != nil {
			t.Logf("%s: not rewritten: %v", name, err)
			m.Close()
			continue
		}
		written := filepath.Join(t.TempDir(), "patched.onnx")
		if err := m.Save(written, onnx.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
		m.Close()
		plain, err := run(t, original, written, validate.Options{Length: 16})
		if err != nil || plain.Rebuilt == nil || plain.Rebuilt.First != nil {
			t.Logf("%s: not confirmed as it was written: %v %+v", name, err, plain)
			continue
		}
		for form, save := range savers() {
			again := filepath.Join(t.TempDir(), "again.onnx")
			save(t, written, again)
			if a, err := os.ReadFile(again); err != nil || len(a) == 0 {
				t.Fatal(err)
			} else if b, _ := os.ReadFile(written); bytes.Equal(a, b) {
				t.Errorf("%s, %s: the file is as it was", name, form)
			}
			r, err := run(t, original, again, validate.Options{Length: 16})
			if err != nil || r.Verdict != plain.Verdict || r.Rebuilt.First != nil {
				t.Errorf("%s, %s: %v; %+v", name, form, err, r)
				if r != nil && r.Rebuilt != nil && r.Rebuilt.First != nil {
					t.Error(r.Rebuilt.First)
				}
			}
		}
	}
}
