package analysis

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// dumpPoint is the size of the inputs that go with a dumped site, where the
// model takes any.
var dumpPoint = dim.Point{B: 2, L: 5, P: 3, S: 7}

// dumpSite writes an unchanged site, by itself and without the model's weights,
// for a report about it: folder/site-N/model.onnx, and its inputs as the onnx
// package's tests hold them, test_data_set_0/input_0.pb and so on.
func dumpSite(l *eval.Evaluator, folder string, layer int, s *site.Sized, why *graph.Refusal) error {
	folder = filepath.Join(folder, fmt.Sprintf("site-%d", layer))
	data := filepath.Join(folder, "test_data_set_0")
	if err := os.MkdirAll(data, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "reason.txt"), []byte(why.Error()+"\n"), 0o644); err != nil {
		return err
	}
	p, err := site.ExtractSite(l.Graph, s)
	if err != nil {
		return nil // the reason says why
	}
	m := p.Model(onnx.Float)
	if err := eval.Contain(m); err != nil {
		return nil // constants of the site are absent, or too large for a report
	}
	if err := m.Save(filepath.Join(folder, "model.onnx"), onnx.SaveOptions{Force: true}); err != nil {
		return err
	}
	feeds := map[string]engine.Tensor{}
	pt := l.Table.At(dumpPoint)
	rng := rand.New(rand.NewPCG(1, uint64(layer)))
	for _, c := range s.Boundaries() {
		dims, ok := l.Table.Dims[c]
		if !ok {
			return nil // without sizes there are no inputs
		}
		sizes := dim.Evaluate(dims, pt)
		x := make([]float32, engine.Elements(sizes))
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		feeds[c] = engine.Float32s(x, sizes...)
	}
	all, err := (&eval.Loaded{Piece: p, Table: l.Table}).Feeds(pt, feeds)
	if err != nil {
		return nil
	}
	for i, v := range m.Graph.Inputs {
		t, ok := all[v.Name]
		if !ok {
			continue
		}
		b, err := proto.Marshal(&onnxpb.TensorProto{Name: proto.String(v.Name), Dims: t.Dims, DataType: proto.Int32(int32(t.Type)), RawData: t.Data})
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(data, fmt.Sprintf("input_%d.pb", i)), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}
