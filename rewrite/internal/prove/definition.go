package prove

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/contrib"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// Definition tests on random inputs in float32 that a function computes the same as its
// op. The function runs in ONNX Runtime without the op library, the op with it. The error of
// each against float64 may be at most twice that of a plain float32 implementation. It returns the largest difference of the
// function from float64, relative to the largest number of each result.
//
// n is a node of the op, f the function under the name of its op, opset the version of the
// standard operators that it is written against, and headSize the size of the op's heads.
func Definition(ctx context.Context, eng engine.Engine, n *onnx.Node, op customop.RotaryAttention, f *onnx.Function, opset int64, headSize int) (float64, error) {
	return written(ctx, eng, n, op, opset, headSize, definitionCalls, carrying(f))
}

// ErrOff says that what was tested computes something else.
var ErrOff = errors.New("computes something else")

// DefinitionUpTo is Definition on the calls that see so many tokens at most.
func DefinitionUpTo(ctx context.Context, eng engine.Engine, n *onnx.Node, op customop.RotaryAttention, f *onnx.Function, opset int64, headSize, tokens int) (float64, error) {
	few := func(op customop.RotaryAttention, a rope.Attention) []call {
		return slices.DeleteFunc(definitionCalls(op, a), func(c call) bool { return max(c.Past+c.Length, c.Keys) > tokens })
	}
	return written(ctx, eng, n, op, opset, headSize, few, carrying(f))
}

// carrying puts a function into a model.
func carrying(f *onnx.Function) func(*onnx.Model) error {
	return func(m *onnx.Model) error {
		m.RequireIR(8)
		m.Functions = []*onnx.Function{f}
		return nil
	}
}

// Contrib is Definition for other nodes that replace the op in a model: those of ONNX Runtime,
// whose input contract is narrower. No row has padding, positions count from the past on,
// and tables have as many rows as the longest call tokens. With scales the caches are int8.
func Contrib(ctx context.Context, eng engine.Engine, n *onnx.Node, op customop.RotaryAttention, scales *contrib.Scales, opset int64, headSize int, replace func(m *onnx.Model, rows int64) error) (float64, error) {
	write := func(m *onnx.Model) error {
		rows := 0
		for _, c := range contribCalls(op, rope.Attention{}) {
			rows = max(rows, c.Past+c.Length)
		}
		return replace(m, int64(rows))
	}
	if scales != nil {
		return scaled(ctx, eng, n, op, *scales, opset, headSize, write)
	}
	return written(ctx, eng, n, op, opset, headSize, contribCalls, write)
}

// written tests what an op is written as in a model of its own. write changes the model.
func written(ctx context.Context, eng engine.Engine, n *onnx.Node, op customop.RotaryAttention, opset int64, headSize int, calls func(customop.RotaryAttention, rope.Attention) []call, write func(*onnx.Model) error) (float64, error) {
	attention, err := lower.Value(op, rope.Attention{})
	if err != nil {
		return 0, err
	}
	attention.HeadSize = headSize
	sessions, err := bothWays(ctx, eng, n, opset, write)
	if err != nil {
		return 0, err
	}
	for _, s := range sessions {
		defer s.Close()
	}
	worst := 0.0
	for _, c := range calls(op, attention) {
		e, err := c.compare(ctx, sessions)
		if err != nil {
			return 0, fmt.Errorf("in a call of %d new tokens after %d: %w", c.Length, c.Past, err)
		}
		worst = max(worst, e)
	}
	return worst, nil
}

// bothWays loads an op as it is written, and by the library.
func bothWays(ctx context.Context, eng engine.Engine, n *onnx.Node, opset int64, write func(*onnx.Model) error) (sessions [2]engine.Session, _ error) {
	for i := range sessions {
		m := oneOp(n, opset)
		err := error(nil)
		if i == 0 {
			err = write(m)
		} else if op := m.Graph.Nodes[0]; op.Attribute("precision") != nil {
			// fast rounds to bfloat16 where the processor multiplies that, and means the same.
			op.SetAttribute(onnx.StringAttr("precision", "exact"))
		}
		if err == nil {
			sessions[i], err = loaded(ctx, eng, m, i == 1)
		}
		if err != nil {
			if i == 1 {
				sessions[0].Close()
			}
			return sessions, err
		}
	}
	return sessions, nil
}

// loaded loads a model, with or without the op library.
func loaded(ctx context.Context, eng engine.Engine, m *onnx.Model, library bool) (engine.Session, error) {
	data, err := m.Marshal()
	if err != nil {
		return nil, err
	}
	s, err := eng.Load(ctx, engine.Model{Bytes: data, Inputs: eval.InputNames(m), Outputs: outputNames(m), Library: library})
	if err != nil {
		return nil, fmt.Errorf("ONNX Runtime does not load it: %w", err)
	}
	return s, nil
}

// oneOp is a model of one node, whose inputs and outputs have the names of the specification.
func oneOp(n *onnx.Node, opset int64) *onnx.Model {
	m := onnx.New()
	m.RequireIR(7)
	m.RequireOpset("", opset)
	m.RequireOpset(customop.Domain, 1)
	m.Graph.Name = "definition"
	n = n.Clone()
	n.Inputs, n.Outputs = slices.Clone(n.Inputs), slices.Clone(n.Outputs)
	types := map[string]onnx.DataType{"T": onnx.Float, "C": onnx.Float, "float": onnx.Float, "int64": onnx.Int64, "int32": onnx.Int32}
	spec, _ := customop.SpecOf(n.OpType) // n is a node of this project's
	for i, v := range spec.Inputs {
		if i < len(n.Inputs) && n.Inputs[i] != "" {
			n.Inputs[i] = v.Name
			m.Graph.AddInput(&onnx.ValueInfo{Name: v.Name, Type: types[v.Type]})
		}
	}
	for i, v := range spec.Outputs {
		if i < len(n.Outputs) && n.Outputs[i] != "" {
			n.Outputs[i] = v.Name
			m.Graph.AddOutput(&onnx.ValueInfo{Name: v.Name, Type: types[v.Type]})
		}
	}
	m.Graph.InsertNode(nil, n)
	castCaches(m, n)
	return m
}

// castCaches lets a model of one op take and give caches of few bits as float32: those of int8 in steps
// of their scales.
func castCaches(m *onnx.Model, n *onnx.Node) {
	to := definition.CacheTypes[n.Text("cache_type", "same")]
	if to == 0 {
		return
	}
	cast := func(from, name string, typ onnx.DataType) *onnx.Node {
		return onnx.NewNode("Cast", []string{from}, []string{name}, onnx.IntAttr("to", int64(typ)))
	}
	before, after := []*onnx.Node{}, []*onnx.Node{}
	for i, v := range customop.RotaryAttentionSpec.Inputs {
		if v.Type == "C" && i < len(n.Inputs) && n.Inputs[i] != "" {
			n.Inputs[i] = v.Name + "_stored"
			before = append(before, cast(v.Name, n.Inputs[i], to))
		}
	}
	for i, v := range customop.RotaryAttentionSpec.Outputs {
		if v.Type == "C" && i < len(n.Outputs) && n.Outputs[i] != "" {
			n.Outputs[i] = v.Name + "_stored"
			after = append(after, cast(n.Outputs[i], v.Name, onnx.Float))
		}
	}
	m.Graph.Nodes = slices.Concat(before, m.Graph.Nodes, after)
}

func outputNames(m *onnx.Model) (list []string) {
	for _, v := range m.Graph.Outputs {
		list = append(list, v.Name)
	}
	return list
}

// compare runs a call on random numbers until enough of them were compared.
func (c call) compare(ctx context.Context, sessions [2]engine.Session) (float64, error) {
	numbers := c.Batch * c.Attention.Heads * c.Length * c.Attention.HeadSize
	draws := min(1+2048/numbers, mostDraws)
	var errs [2]map[string]*deviation
	for i := range errs {
		errs[i] = map[string]*deviation{}
	}
	seed := 0
	for range 3 { // what seems wrong may be luck, and is judged by more numbers
		for ; seed < draws; seed++ {
			p, feeds := c.filled(rand.New(rand.NewPCG(uint64(seed), 19)))
			want, err := ref.Run(p)
			if err != nil {
				return 0, err
			}
			plain, err := ref.RunFloat32(p)
			if err != nil {
				return 0, err
			}
			got, err := engine.RunAll(ctx, []engine.Call{{Session: sessions[0], Feeds: feeds}, {Session: sessions[1], Feeds: feeds}})
			if err != nil {
				return 0, err
			}
			for i := range got {
				c.judge(errs[i], got[i], want, plain)
			}
		}
		if holds(errs[0]) && holds(errs[1]) {
			break
		}
		draws *= 8
	}
	worst := 0.0
	for i, way := range []string{"it", "the op library"} {
		for name, d := range errs[i] {
			if !d.holds() {
				off := fmt.Sprintf("%s is off by %.3g in %s, more than twice the %.3g of a plain implementation", way, d.err, name, d.plain)
				if i == 0 {
					return 0, fmt.Errorf("it %w: %s", ErrOff, off)
				}
				return 0, errors.New(off)
			}
			if i == 0 && d.largest > 0 {
				worst = max(worst, d.err/d.largest)
			}
		}
	}
	return worst, nil
}

// deviation is how far a result is from float64.
type deviation struct{ err, plain, largest float64 }

func (d *deviation) holds() bool { return d.err <= 2*max(d.plain, d.largest*0x1p-24) }

func holds(list map[string]*deviation) bool {
	for _, d := range list {
		if !d.holds() {
			return false
		}
	}
	return true
}

// judge adds the results of a run.
func (c call) judge(of map[string]*deviation, got map[string]engine.Tensor, want, plain ref.Result) {
	for _, r := range []struct {
		name        string
		want, plain []float64
		rows        bool // of a cache: those behind the tokens may hold anything
	}{
		{"output", want.Output, plain.Output, false},
		{"present_key", want.PresentKey, c.stored(plain.PresentKey), true},
		{"present_value", want.PresentValue, c.stored(plain.PresentValue), true},
		{"log_sum_exp", want.LogSumExp, plain.LogSumExp, false},
	} {
		t, ok := got[r.name]
		if !ok {
			continue
		}
		if of[r.name] == nil {
			of[r.name] = &deviation{}
		}
		values := t.ScaledValues(got[r.name+lower.ScaleSuffix])
		if r.rows {
			r.want, r.plain = c.presentRows(r.want), c.presentRows(r.plain)
		}
		if len(values) != len(r.want) {
			of[r.name].err = math.Inf(1)
			continue
		}
		for i, w := range r.want {
			if r.rows && c.behind(i) {
				continue
			}
			of[r.name].add(values[i], w, r.plain[i])
		}
	}
}

// behind reports whether a number of a cache is behind its row's tokens.
func (c call) behind(i int) bool {
	if c.op.CacheLength == "" {
		return false
	}
	rows := c.Past + c.Length
	if c.op.CacheRing == 1 {
		rows = c.capacity()
	}
	row, batch := i/c.Attention.HeadSize%rows, i/(c.Attention.HeadSize*rows*c.Attention.KVHeads)
	return row >= c.pasts()[batch]+c.Length
}

func (d *deviation) add(got, want, plain float64) {
	if got == want { // infinities have no difference
		return
	}
	e := math.Abs(got - want)
	if math.IsNaN(e) {
		e = math.Inf(1)
	}
	d.err, d.plain = max(d.err, e), max(d.plain, math.Abs(plain-want))
	if !math.IsInf(want, 0) {
		d.largest = max(d.largest, math.Abs(want))
	}
}
