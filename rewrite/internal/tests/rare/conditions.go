package rare

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// call is a call in which a mutant differs from its export.
type call struct {
	batch, past, length int64
	padded              int64 // tokens on the left of the last row
	first               int64 // position of the first token
}

func (c call) total() int64 { return c.past + c.length }

// mutant is an export that is being changed.
type mutant struct {
	*kit.Patient
	path string
	rng  *rand.Rand
	call
	cached bool
}

// quantity is a number that the graph knows: of a call, or one for each query, key or position.
type quantity struct {
	name  string
	value string
	at    int64 // what it is in the call, at one place at least
	one   bool  // a number of the call
}

// draw returns a number from low to high, both included.
func (m *mutant) draw(low, high int64) int64 { return low + m.rng.Int64N(high-low+1) }

// truth is 1 where a condition holds, 0 where it does not.
func (m *mutant) truth(condition string) string { return m.Cast(condition, onnx.Int64) }

// real is a number in float32.
func (m *mutant) real(v string) string { return m.Cast(v, onnx.Float) }

// list makes a list of one number.
func (m *mutant) list(number string) string { return m.Op("Unsqueeze", number, m.Ints(0)) }

// ones are as many ones as a number says.
func (m *mutant) ones(number string) string { return m.Op("Expand", m.Ints(1), m.list(number)) }

func (m *mutant) is(op, v string, number int64) string { return m.Op(op, v, m.Int(number)) }

// newTokens, cachedTokens, rows and paddedTokens are quantities of the call.
func (m *mutant) newTokens() quantity {
	return quantity{"length", m.Size("input_ids", 1), m.length, true}
}

func (m *mutant) allTokens() quantity {
	return quantity{"total", m.Size("attention_mask", 1), m.total(), true}
}

func (m *mutant) cachedTokens() quantity {
	return quantity{"past", m.Op("Sub", m.allTokens().value, m.newTokens().value), m.past, true}
}

func (m *mutant) rows() quantity { return quantity{"batch", m.Size("input_ids", 0), m.batch, true} }

func (m *mutant) paddedTokens() quantity {
	real := m.Node("ReduceSum", []string{"attention_mask"}, onnx.IntAttr("keepdims", 0))
	return quantity{"padding", m.Op("Sub", m.Node("Size", []string{"attention_mask"}), real), m.padded, true}
}

// keys are the places of all keys, [total]; queries those of the new tokens, [length, 1].
func (m *mutant) keys() string { return m.Op("Range", m.Int(0), m.allTokens().value, m.Int(1)) }

func (m *mutant) queries() string {
	total := m.allTokens().value
	return m.Op("Unsqueeze", m.Op("Range", m.Op("Sub", total, m.newTokens().value), total, m.Int(1)), m.Ints(1))
}

// ofCall draws a quantity of the call that small calls do not have.
func (m *mutant) ofCall() quantity {
	list := []func() quantity{m.allTokens, m.allTokens}
	for _, of := range []struct {
		at, least int64
		of        func() quantity
	}{{m.length, 9, m.newTokens}, {m.batch, 5, m.rows}, {m.past, 9, m.cachedTokens}, {m.padded, 9, m.paddedTokens}} {
		if of.at >= of.least {
			list = append(list, of.of)
		}
	}
	return list[m.rng.IntN(len(list))]()
}

// kind is a way to compute a condition that holds where a quantity is what it is in the call, or from there on, and not
// where it is smaller.
type kind struct {
	name string
	one  bool // of numbers of the call alone
	of   func(m *mutant, q quantity) string
}

// kinds are all of them.
var kinds = []kind{
	{"sum", false, func(m *mutant, q quantity) string {
		x, sum := q.value, q.at
		for range m.draw(1, 3) {
			c := m.draw(1, 300)
			x, sum = m.Op("Add", x, m.Int(c)), sum+c
		}
		return m.is("Equal", x, sum)
	}},
	{"sum of two", true, func(m *mutant, q quantity) string {
		other := m.ofCall()
		return m.is("Equal", m.Op("Add", q.value, other.value), q.at+other.at)
	}},
	{"difference", false, func(m *mutant, q quantity) string {
		c := m.draw(1, q.at)
		return m.is(pick(m, "Equal", "GreaterOrEqual"), m.Op("Sub", q.value, m.Int(c)), q.at-c)
	}},
	{"several", true, func(m *mutant, q quantity) string {
		other := m.ofCall()
		return m.Op("And", m.is("Equal", m.Op("Sub", q.value, other.value), q.at-other.at), m.Op("And", m.is("Greater", q.value, q.at/2), m.is("LessOrEqual", m.Op("Sub", m.Int(q.at), q.value), 0)))
	}},
	{"nested", false, func(m *mutant, q quantity) string {
		c := max(m.draw(3, 9), q.at/100)
		x, left := q.value, q.at
		for ; left >= c; left -= c {
			x = m.Op("Sub", x, m.Int(c))
		}
		return m.is("Equal", x, left)
	}},
	{"count", true, func(m *mutant, q quantity) string {
		return m.is("Equal", m.Node("ReduceSum", []string{m.ones(q.value)}, onnx.IntAttr("keepdims", 0)), q.at)
	}},
	{"count of truths", true, func(m *mutant, q quantity) string {
		below := m.is("Less", m.Op("Range", m.Int(0), q.value, m.Int(1)), q.at)
		return m.is("Equal", m.Node("ReduceSum", []string{m.truth(below)}, onnx.IntAttr("keepdims", 0)), q.at)
	}},
	{"count of counts", true, func(m *mutant, q quantity) string {
		sums := m.Op("CumSum", m.Op("CumSum", m.ones(q.value), m.Int(0)), m.Int(0))
		return m.is("Equal", m.Node("ReduceMax", []string{sums}, onnx.IntAttr("keepdims", 0)), q.at*(q.at+1)/2)
	}},
	{"wrap", false, func(m *mutant, q quantity) string {
		to := pick(m, onnx.Int8, onnx.Int16, onnx.Int32)
		bits := map[onnx.DataType]int{onnx.Int8: 7, onnx.Int16: 15, onnx.Int32: 31}[to]
		if q.at > 1<<bits {
			to, bits = onnx.Int32, 31
		}
		factor := (int64(1)<<bits + q.at - 1) / q.at
		return m.is("Less", m.Cast(m.Cast(m.Op("Mul", q.value, m.Int(factor)), to), onnx.Int64), 0)
	}},
	{"unsigned", false, func(m *mutant, q quantity) string { // below 0, it is large
		return m.Op("Not", m.is("Greater", m.Cast(m.Cast(m.Op("Sub", q.value, m.Int(q.at)), onnx.Uint32), onnx.Int64), 1<<20))
	}},
	{"remainder", false, func(m *mutant, q quantity) string { return m.is("Equal", m.Op("Mod", q.value, m.Int(q.at+1)), q.at) }},
	{"table", false, func(m *mutant, q quantity) string {
		size := max(2048, q.at+10)
		list := make([]int64, size)
		list[q.at] = 1
		at := m.Op("Min", m.Op("Max", q.value, m.Int(0)), m.Int(size-1))
		if m.rng.IntN(2) == 0 {
			t := ir.Int64Tensor(m.Fresh("table"), []int64{size / 2, 2}, list[:size/2*2]...)
			m.Graph.AddInitializer(t)
			return m.is("Equal", m.Op("GatherND", t.Name, m.Node("Concat", []string{
				m.Op("Unsqueeze", m.Op("Div", m.Op("Min", at, m.Int(size/2*2-1)), m.Int(2)), m.Ints(-1)), m.Op("Unsqueeze", m.Op("Mod", at, m.Int(2)), m.Ints(-1)),
			}, onnx.IntAttr("axis", -1))), 1)
		}
		return m.is("Equal", m.Op("Gather", m.Ints(list...), at), 1)
	}},
	{"scattered", true, func(m *mutant, q quantity) string {
		zeros := m.Op("Expand", m.Ints(0), m.Ints(q.at+1))
		at := m.Op("Unsqueeze", m.list(m.Op("Min", q.value, m.Int(q.at))), m.Ints(1))
		return m.is("Equal", m.Op("Squeeze", m.Op("Slice", m.Op("ScatterND", zeros, at, m.Ints(1)), m.Ints(q.at), m.Ints(q.at+1)), m.Ints(0)), 1)
	}},
	{"sliced table", true, func(m *mutant, q quantity) string {
		list := make([]int64, q.at+1)
		list[q.at] = 1
		at := m.list(m.Op("Min", q.value, m.Int(q.at)))
		return m.is("Equal", m.Op("Squeeze", m.Op("Slice", m.Ints(list...), at, m.Op("Add", at, m.Ints(1))), m.Ints(0)), 1)
	}},
	{"near in float", false, func(m *mutant, q quantity) string {
		return m.Op("Less", m.Op("Abs", m.Op("Sub", m.real(q.value), m.Float(float32(q.at)))), m.Float(0.5))
	}},
	{"quotient in float", false, func(m *mutant, q quantity) string {
		x := m.Op("Div", m.real(q.value), m.Float(float32(q.at)))
		if m.rng.IntN(2) == 0 {
			return m.Op("Greater", m.Op("Floor", x), m.Float(0.5))
		}
		return m.is("Greater", m.Cast(m.Op("Mul", x, m.Float(1.0001)), onnx.Int64), 0)
	}},
	{"rounded", false, func(m *mutant, q quantity) string { // the first odd number that the type does not have
		to, odd := onnx.Float16, int64(2049)
		if m.rng.IntN(2) == 0 {
			to, odd = onnx.BFloat16, 257
		}
		x := m.real(m.Op("Max", m.Op("Add", q.value, m.Int(odd-q.at)), m.Int(0)))
		return m.Op("Not", m.Op("Equal", m.Cast(m.Cast(x, to), onnx.Float), x))
	}},
	{"sine", false, func(m *mutant, q quantity) string {
		x := m.Op("Sin", m.Op("Mul", m.Op("Sub", m.real(q.value), m.Float(float32(q.at))), m.Float(math.Pi/400_000)))
		return m.Op("Less", m.Op("Abs", x), m.Float(math.Pi/1_000_000))
	}},
	{"factors in float", true, func(m *mutant, q quantity) string { // up to 16, these products are exact
		x := m.real(q.value)
		x = m.Op("Sub", m.Op("Mul", x, m.Float(1<<20+1)), m.Op("Mul", x, m.Float(1<<20)))
		return m.Op("Not", m.Op("Equal", x, m.real(q.value)))
	}},
	{"lost in float", false, func(m *mutant, q quantity) string {
		x := m.factor(q, 100)
		return m.Op("Not", m.Op("Equal", m.Op("Sub", m.Op("Add", x, m.Float(1e9)), x), m.Float(1e9)))
	}},
	{"no number", false, func(m *mutant, q quantity) string {
		return m.Op("Not", m.Op("Equal", m.Op("Mul", m.factor(q, float32(math.NaN())), m.Float(0)), m.Float(0)))
	}},
	{"behind a table", true, func(m *mutant, q quantity) string { // one behind the last zero
		end := m.list(q.value)
		zeros := m.Op("Slice", m.Ints(make([]int64, q.at-1)...), m.Ints(0), end)
		both := m.Op("Slice", m.Node("Concat", []string{zeros, m.ones(q.value)}, onnx.IntAttr("axis", 0)), m.Ints(0), end)
		return m.is("Greater", m.Op("Gather", both, m.is("Sub", q.value, 1)), 0)
	}},
	{"square", false, func(m *mutant, q quantity) string {
		x := m.Op("Sub", q.value, m.Int(q.at))
		return m.is("Equal", m.Op("Mul", x, x), 0)
	}},
	{"product", true, func(m *mutant, q quantity) string {
		other := m.ofCall()
		return m.is("Equal", m.Op("Mul", q.value, other.value), q.at*other.at)
	}},
	{"largest", false, func(m *mutant, q quantity) string {
		return m.is("Greater", m.Op("Max", m.Op("Sub", q.value, m.Int(q.at-1)), m.Int(0)), 0)
	}},
	{"clip", false, func(m *mutant, q quantity) string {
		return m.is("Equal", m.Op("Clip", q.value, m.Int(0), m.Int(q.at)), q.at)
	}},
	{"choices", false, func(m *mutant, q quantity) string {
		x := m.Op("Where", m.is("Less", q.value, q.at+1), m.Int(1), m.Int(0))
		return m.is("Equal", m.Op("Where", m.is("Greater", q.value, q.at-1), x, m.Int(0)), 1)
	}},
	{"truth of a number", false, func(m *mutant, q quantity) string {
		return m.Op("Not", m.Cast(m.Op("Sub", q.value, m.Int(q.at)), onnx.Bool))
	}},
	{"minus one", false, func(m *mutant, q quantity) string {
		x := m.Op("Where", m.Op("Equal", m.Op("Sub", q.value, m.Int(q.at+1)), m.Int(-1)), m.Int(1), m.Int(0))
		return m.is("Equal", x, 1)
	}},
	{"size of a slice", true, func(m *mutant, q quantity) string {
		if m.rng.IntN(2) == 0 {
			return m.is("Greater", m.Size(m.Op("Slice", m.ones(q.value), m.Ints(q.at-1), m.Ints(1<<40)), 0), 0)
		}
		return m.Op("Less", m.Size(m.Op("Slice", m.ones(q.value), m.Ints(0), m.Ints(q.at-1)), 0), q.value)
	}},
	{"size of a range", true, func(m *mutant, q quantity) string {
		return m.is("Greater", m.Size(m.Op("Range", m.Int(0), m.is("Sub", q.value, q.at-1), m.Int(1)), 0), 0)
	}},
	{"size that a condition chooses", true, func(m *mutant, q quantity) string {
		more := m.list(m.Op("Add", m.truth(m.is("Equal", q.value, q.at)), m.Int(1)))
		made := pick(m, func() string { return m.Op("Expand", m.Ints(1), more) }, func() string { return m.Op("ConstantOfShape", more) },
			func() string { return m.Op("Tile", m.Ints(1), more) }, func() string { return m.Op("Slice", m.Ints(1, 2, 3), m.Ints(0), more) })()
		return m.is("Equal", m.Size(made, 0), 2)
	}},
	{"size of a hidden state", true, func(m *mutant, q quantity) string {
		rows := m.Op("Gather", m.Floats([]int64{2, 1}, 1, 2), m.Op("Mul", "input_ids", m.Int(0))) // [batch, length, 1]
		cut := m.list(m.truth(m.is("Equal", q.value, q.at)))
		short := m.Op("Slice", m.Op("Add", rows, rows), cut, m.Ints(1<<40), m.Ints(1))
		return m.Op("Less", m.Size(short, 1), m.newTokens().value)
	}},
	{"triangle", true, func(m *mutant, q quantity) string {
		x := m.Op("Trilu", m.constant([]int64{1, 4}, 1, 1, 1, 1), m.Op("Sub", m.Int(q.at+3), q.value))
		return m.is("Greater", m.Node("ReduceSum", []string{x}, onnx.IntAttr("keepdims", 0)), 0)
	}},
	{"index below 0", false, func(m *mutant, q quantity) string {
		return m.is("Equal", m.Op("Gather", m.Ints(0, 1), m.Op("Max", m.Op("Min", m.Op("Sub", m.Int(q.at-1), q.value), m.Int(0)), m.Int(-1))), 1)
	}},
	{"rows one behind the other", true, func(m *mutant, q quantity) string {
		end := m.truth(m.is("Equal", q.value, q.at))
		both := m.Node("Concat", []string{m.Op("Slice", m.Ints(0, 1), m.list(end), m.Ints(2)), m.Op("Slice", m.Ints(0, 1), m.Ints(0), m.list(end))}, onnx.IntAttr("axis", 0))
		return m.is("Equal", m.Op("Gather", both, m.Int(0)), 1)
	}},
}

// factor is an element of a table of zeros with another number at one place.
func (m *mutant) factor(q quantity, other float32) string {
	list := make([]float32, max(2048, q.at+10))
	list[q.at] = other
	at := m.Op("Min", m.Op("Max", q.value, m.Int(0)), m.Int(int64(len(list))-1))
	return m.Op("Gather", m.Floats([]int64{int64(len(list))}, list...), at)
}

func (m *mutant) constant(dims []int64, list ...int64) string {
	t := ir.Int64Tensor(m.Fresh("numbers"), dims, list...)
	m.Graph.AddInitializer(t)
	return t.Name
}

func pick[T any](m *mutant, list ...T) T { return list[m.rng.IntN(len(list))] }

// condition computes one of a quantity by a kind.
func (m *mutant) condition(k kind, q quantity) (value, text string) {
	return k.of(m, q), fmt.Sprintf("%s of %s at %d", k.name, q.name, q.at)
}
