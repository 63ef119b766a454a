package graphs_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rope-rewrite/rope-rewrite/internal/testfuzz"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// damaged are small exports: caches that grow, of fixed size and with keys that are not rotated, none, a
// bias by distance, and a part of the channels rotated. The first is also damaged after a rewrite.
var damaged = []string{
	"models/llama__dynamo18-static-cache", "field/raw_cache", "field/embedder", "field/alibi", "field/partial_gqa", "field/rotary23_no_positions", "field/linear",
}

// record is a field of a message with its tag.
type record struct {
	number protowire.Number
	bytes  []byte
}

// records are the fields of a message; what cannot be read is the last one.
func records(message []byte) (list []record) {
	for len(message) > 0 {
		number, _, n := protowire.ConsumeField(message)
		if n < 0 {
			number, n = 0, len(message)
		}
		list = append(list, record{number, message[:n]})
		message = message[n:]
	}
	return list
}

// content is what a field holds behind its tag and length; false where it has none.
func content(r record) ([]byte, bool) {
	_, kind, n := protowire.ConsumeTag(r.bytes)
	if r.number == 0 || kind != protowire.BytesType {
		return nil, false
	}
	b, _ := protowire.ConsumeBytes(r.bytes[n:])
	return b, true
}

func message(number protowire.Number, list []record) record {
	var b []byte
	for _, r := range list {
		b = append(b, r.bytes...)
	}
	return record{number, protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), b)}
}

// damage changes a model's bytes as edits say, of six bytes each: what is done, to which field of the
// graph, to which field of that, where in it or by which other one, and with what. Lengths stay right,
// but for those that a changed byte is a part of.
func damage(model, edits []byte) []byte {
	const graphField = 7
	top := records(model)
	for i, r := range top {
		if r.number != graphField {
			continue
		}
		b, _ := content(r)
		graph := records(b)
		for ; len(edits) >= 6 && len(graph) > 0; edits = edits[6:] {
			at := (int(edits[1]) | int(edits[2])<<8) % len(graph)
			graph = edit(graph, at, edits[0], int(edits[3]), int(edits[4]), edits[5])
		}
		top[i] = message(graphField, graph)
	}
	var out []byte
	for _, r := range top {
		out = append(out, r.bytes...)
	}
	return out
}

func edit(graph []record, at int, what byte, field, other int, value byte) []record {
	switch what % 8 {
	case 0: // without the node, weight or value
		return append(graph[:at:at], graph[at+1:]...)
	case 1: // elsewhere as well
		return append(graph[:at:at], append([]record{graph[(at+1+field)%len(graph)]}, graph[at:]...)...)
	}
	b, ok := content(graph[at])
	if !ok || len(b) == 0 {
		return graph
	}
	graph = append([]record{}, graph...)
	if what%8 == 2 { // any byte
		b = bytes.Clone(b)
		b[(field<<8|other)%len(b)] ^= value
		graph[at] = message(graph[at].number, []record{{0, b}})
		return graph
	}
	inner := records(b)
	field %= len(inner)
	switch what % 8 {
	case 3: // without the field
		inner = append(inner[:field:field], inner[field+1:]...)
	case 4: // a byte of the field's content
		if c, ok := content(inner[field]); ok && len(c) > 0 {
			c = bytes.Clone(c)
			c[other%len(c)] ^= value
			inner[field] = message(inner[field].number, []record{{0, c}})
		}
	default: // the field of another node
		b, _ := content(graph[(at+other-128+len(graph)*128)%len(graph)])
		var same []record
		for _, r := range records(b) {
			if r.number == inner[field].number {
				same = append(same, r)
			}
		}
		if len(same) > 0 {
			inner[field] = same[int(value)%len(same)]
		}
	}
	graph[at] = message(graph[at].number, inner)
	return graph
}

// requests are what is asked of a damaged model.
func requests() []rewrite.Options {
	spec := func(axis rope.Axis, text string) rewrite.Options {
		s, err := rope.ParseSpec(axis, text)
		if err != nil {
			panic(err)
		}
		return rewrite.Options{Edits: []rope.Spec{s}, Context: rope.Context{Length: 8192, Original: 2048}}
	}
	plain := spec(rope.ScalingAxis, "linear:factor=2")
	plain.Target = rewrite.PlainONNX
	return []rewrite.Options{{}, spec(rope.ScalingAxis, "yarn:factor=4"), spec(rope.PositionsAxis, "string"), plain, {Cache: rewrite.Cache{Capacity: 64}}}
}

// FuzzRewrite rewrites exports with damaged bytes. Whatever the file says, the rewrite gives an error of
// one line and leaves the model in memory as it was, or it gives a model that is written and read again.
// Neither touches the file.
func FuzzRewrite(f *testing.F) {
	testruntime.Require(f)
	var models [][]byte
	for _, name := range damaged {
		data, err := os.ReadFile("../../../../testdata/" + name + "/model.onnx")
		if err != nil {
			f.Fatal(err)
		}
		models = append(models, data)
	}
	models = append(models, again(f, models[0]))
	asked := requests()
	seeds := []string{"\x00\x00", "\x01\x02\x02\x07\x00\x01\x09\x20", "\x02\x01\x05\x19\x00\x02\x90\x01", "\x03\x00\x00\x0c\x00\x00\x00\x00", "\x04\x03\x04\x21\x00\x02\x05\x04",
		"\x07\x00", "\x07\x01\x05\x03\x00\x05\x80\x01", "\x01\x00{}-\u00e9\xff", "\x04\x01-i\x03\x04!-"}
	testfuzz.Run(f, seeds, 6, func(t testing.TB, input []byte) bool {
		if len(input) < 2 {
			return false
		}
		data := damage(models[int(input[0])%len(models)], input[2:min(len(input), 2+6*8)])
		return rewritten(t, data, asked[int(input[1])%len(asked)])
	})
}

// again is a model that was rewritten.
func again(f *testing.F, data []byte) []byte {
	f.Helper()
	m, err := onnx.Parse(data)
	if err == nil {
		_, err = kit.Rewrite(context.Background(), m, rewrite.Options{})
	}
	var written []byte
	if err == nil {
		written, err = m.Marshal()
	}
	if err != nil {
		f.Fatal(err)
	}
	return written
}

// rewritten rewrites a model and reports whether it has an attention layer that was replaced.
func rewritten(t testing.TB, data []byte, opts rewrite.Options) bool {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "model.onnx")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, data) {
			t.Errorf("the original changed (%v)", err)
		}
		os.RemoveAll(dir) // of a million inputs, too many to keep to the end
	}()
	m, err := onnx.Open(path)
	if err != nil {
		oneLine(t, err)
		return false
	}
	defer m.Close()
	opts.AllowUnchanged = true
	opts.Evaluation.Worker, opts.Evaluation.Memory = []string{os.Args[0]}, 2<<30
	ctx, end := context.WithTimeout(context.Background(), 2*time.Minute)
	defer end()
	report, err := rewrite.Rewrite(ctx, m, opts)
	if fault := (*rewrite.FaultError)(nil); errors.As(err, &fault) {
		t.Errorf("%v\n%s", err, fault.Stack)
	}
	if ctx.Err() != nil {
		t.Errorf("it takes more than two minutes (%v)", err)
	}
	written := filepath.Join(dir, "written.onnx")
	if saved := m.Save(written, onnx.SaveOptions{}); saved != nil {
		t.Errorf("the model cannot be written: %v", saved)
		return false
	}
	if err != nil {
		oneLine(t, err)
		if now, _ := os.ReadFile(written); !bytes.Equal(now, data) {
			t.Errorf("the model changed in spite of the error %v", err)
		}
		return false
	}
	again, err := onnx.Open(written)
	if err != nil {
		t.Errorf("what was written cannot be read: %v", err)
		return false
	}
	defer again.Close()
	if _, err := provenance.Read(again); report.Replaced() > 0 && err != nil {
		t.Errorf("the record cannot be read: %v", err)
	}
	return report.Replaced() > 0
}

func oneLine(t testing.TB, err error) {
	t.Helper()
	if text := err.Error(); text == "" || strings.Contains(text, "\n") {
		t.Errorf("the error is not one line: %q", text)
	}
}
