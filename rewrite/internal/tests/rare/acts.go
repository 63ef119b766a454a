package rare

import (
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// act is what a condition changes. of says for a condition in words what it is about and how it acts.
type act struct {
	name  string
	needs func(m *mutant) bool
	of    func(m *mutant, k kind) (about string)
}

func softmax(m *mutant) bool { return len(m.Sites) > 0 }

func positioned(m *mutant) bool {
	return slices.ContainsFunc(m.Graph.Inputs, func(v *onnx.ValueInfo) bool { return v.Name == "position_ids" })
}

func padded(m *mutant) bool { return m.padded > 0 }

// ofKeys draws a quantity that a mask may ask about: of the call, a query, a key, or how far apart they are.
func (m *mutant) ofKeys(k kind) quantity {
	n := m.rng.IntN(4)
	if k.one || n == 0 {
		return m.ofCall()
	}
	last, first := m.total()-1, max(m.past, 9)
	switch n {
	case 1:
		return quantity{"query", m.queries(), m.draw(min(first, last), last), false}
	case 2:
		return quantity{"key", m.keys(), m.draw(9, last), false}
	}
	return quantity{"distance", m.Op("Sub", m.queries(), m.keys()), m.draw(9, last), false}
}

// softmaxed changes what the softmax of each layer is given, of the scores before the mask and that.
func (m *mutant) softmaxed(of func(scores, masked string) string) {
	for _, s := range m.Sites {
		scores := s.Scores()
		for _, n := range m.All("Add") {
			if n.Outputs[0] == s.Softmax.Inputs[0] {
				scores = n.Inputs[0]
			}
		}
		m.Into(s.Softmax, 0, func(old string) string { return of(scores, old) })
	}
}

// rolled moves rows along an axis: those from a place on come first.
func (m *mutant) rolled(v, from string, axis int64) string {
	return m.Node("Concat", []string{m.Op("Slice", v, from, m.Ints(1<<40), m.Ints(axis)), m.Op("Slice", v, m.Ints(0), from, m.Ints(axis))}, onnx.IntAttr("axis", axis))
}

// moved changes the rows of keys or values of every layer.
func (m *mutant) moved(of func(v string, axis int64) string) {
	if m.rng.IntN(2) == 0 {
		m.Value(func(v string) string { return of(v, -2) })
	} else {
		m.Key(func(v string) string { return of(v, -1) })
	}
}

// acts are all of them.
var acts = []act{
	{"later keys are shown", softmax, func(m *mutant, k kind) string {
		c, about := m.condition(k, m.ofKeys(k))
		m.softmaxed(func(scores, masked string) string {
			return m.Op("Where", m.Op("And", c, m.Op("Greater", m.keys(), m.queries())), scores, masked)
		})
		return about
	}},
	{"a key is hidden", softmax, func(m *mutant, k kind) string {
		c, about := m.condition(k, m.ofKeys(k))
		far := m.Op("Less", m.Op("Add", m.keys(), m.Int(m.draw(0, 2))), m.queries())
		m.softmaxed(func(_, masked string) string {
			return m.Op("Where", m.Op("And", c, far), m.Op("Add", masked, m.Float(-1e9)), masked)
		})
		return about
	}},
	{"padding is shown", padded, func(m *mutant, k kind) (about string) {
		m.After("attention_mask", func(mask string) string {
			var c string
			c, about = m.condition(k, m.ofCall())
			return m.Op("Where", c, m.Int(1), mask)
		})
		return about
	}},
	{"the padding of another row", padded, func(m *mutant, k kind) (about string) {
		m.After("attention_mask", func(mask string) string {
			var c string
			c, about = m.condition(k, m.ofCall())
			return m.Op("Where", c, m.rolled(mask, m.Ints(1), 0), mask)
		})
		return about
	}},
	{"the padding of another place", padded, func(m *mutant, k kind) (about string) {
		m.After("attention_mask", func(mask string) string {
			var c string
			c, about = m.condition(k, m.ofCall())
			return m.rolled(mask, m.list(m.truth(c)), 1)
		})
		return about
	}},
	{"other positions", positioned, func(m *mutant, k kind) (about string) {
		m.After("position_ids", func(old string) string {
			q := m.ofCall()
			if !k.one && m.rng.IntN(2) == 0 {
				q = quantity{"position", old, m.first + m.total() - 1, false}
				if m.padded > 0 && m.batch == 1 {
					q.at -= m.padded
				}
			}
			var c string
			c, about = m.condition(k, q)
			return m.Op("Where", c, m.Op("Add", m.Op("Mul", old, m.Int(m.draw(0, 2)*2)), m.Int(3)), old)
		})
		return about
	}},
	{"other angles", func(m *mutant) bool { return len(m.All("Cos")) == 1 }, func(m *mutant, k kind) string {
		c, about := m.condition(k, m.ofCall())
		cos, sin := m.Tables()
		for _, n := range []*onnx.Node{cos, sin} {
			m.Into(n, 0, func(old string) string { return m.Op("Mul", old, m.Op("Where", c, m.Float(2), m.Float(1))) })
		}
		return about
	}},
	{"other scores", softmax, func(m *mutant, k kind) string {
		c, about := m.condition(k, m.ofKeys(k))
		m.softmaxed(func(_, masked string) string {
			return m.Op("Mul", masked, m.Op("Where", c, m.Float(3), m.Float(1)))
		})
		return about
	}},
	{"other probabilities", softmax, func(m *mutant, k kind) string {
		c, about := m.condition(k, m.ofKeys(k))
		m.Probabilities(func(p string) string { return m.Op("Mul", p, m.Op("Where", c, m.Float(2), m.Float(1))) })
		return about
	}},
	{"rows move", softmax, func(m *mutant, k kind) string {
		c, about := m.condition(k, m.ofCall())
		m.moved(func(v string, axis int64) string { return m.rolled(v, m.list(m.truth(c)), axis) })
		return about
	}},
	{"rows move by an index", softmax, func(m *mutant, k kind) string {
		c, about := m.condition(k, m.ofCall())
		at := m.Op("Sub", m.keys(), m.truth(c)) // -1 is the last one
		m.moved(func(v string, axis int64) string {
			return m.Node("Gather", []string{v, at}, onnx.IntAttr("axis", axis))
		})
		return about
	}},
	{"rows move without a condition", softmax, func(m *mutant, _ kind) string {
		c, about := m.start()
		m.moved(func(v string, axis int64) string { return m.rolled(v, c, axis) })
		return about
	}},
	{"queries grow at one position", func(m *mutant) bool { return softmax(m) && positioned(m) }, func(m *mutant, _ kind) string {
		at := m.first + m.total() - 1
		x := m.Op("Unsqueeze", m.Op("Unsqueeze", m.Op("Sub", m.real("position_ids"), m.Float(float32(at))), m.Ints(1)), m.Ints(3))
		m.Query(func(q string) string {
			more := q
			for k := range 17 { // one where the distance is a multiple of 2 to the power of 17, otherwise 0
				cos := m.Op("Cos", m.Op("Mul", x, m.Float(float32(math.Pi/float64(int64(2)<<k)))))
				more = m.Op("Mul", m.Op("Mul", more, cos), cos)
			}
			return m.Op("Add", q, m.Op("Mul", more, m.Floats([]int64{16}, 1, 5, 1, 5, 1, 5, 1, 5, 1, 5, 1, 5, 1, 5, 1, 5)))
		})
		return "product of cosines"
	}},
	{"a table of factors", positioned, func(m *mutant, _ kind) string {
		at := m.first + m.total() - 1
		list := slices.Repeat([]float32{1}, int(max(131_072, at+10)))
		list[at] = 3
		factors := m.Op("Unsqueeze", m.Op("Gather", m.Floats([]int64{int64(len(list))}, list...), "position_ids"), m.Ints(2))
		for _, n := range []string{"Cos", "Sin"} {
			for _, n := range m.All(n) {
				m.After(n.Outputs[0], func(old string) string { return m.Op("Mul", old, factors) })
			}
		}
		return "table of factors by position"
	}},
	{"a table of cosines", func(m *mutant) bool { return len(m.All("Cos")) == 0 }, func(m *mutant, _ kind) string {
		for i, t := range m.Graph.Initializers {
			if t.Type == onnx.Float && len(t.Dims) == 2 && t.Dims[0] > m.total() && t.Dims[1] == 8 {
				exact, err := t.Float64s()
				if err != nil {
					m.TB.Fatal(err)
				}
				var list []float32
				for k, x := range exact {
					if int64(k)/8 == m.total()-1 {
						x = -x
					}
					list = append(list, float32(x))
				}
				m.Graph.Initializers[i] = ir.Float32Tensor(t.Name, t.Dims, list...)
			}
		}
		return "row of a table"
	}},
}

// start draws the place, as a list of one number, that is 0 in small calls and 1 or more in the call.
func (m *mutant) start() (place, text string) {
	q := m.allTokens()
	switch m.rng.IntN(5) {
	case 0: // behind the end, nothing is left
		return m.Ints(m.total() - 1), "a constant"
	case 1:
		return m.list(m.is("Sub", q.value, q.at-1)), "a difference of " + q.name
	case 2:
		x := m.Cast(m.Cast(m.is("Sub", q.value, q.at), onnx.Bool), onnx.Int64)
		return m.list(m.Op("Sub", m.Int(1), x)), "a truth of " + q.name
	case 3:
		x := m.Cast(m.Op("Mul", m.real(q.value), m.Float(1.0001/float32(q.at))), onnx.Int64)
		return m.list(x), "a share of " + q.name
	}
	x := m.Op("Equal", m.list(m.is("Sub", q.value, q.at+1)), m.Ints(-1))
	return m.Op("Where", x, m.Ints(1), m.Ints(0)), "a shape that is -1, of " + q.name
}
