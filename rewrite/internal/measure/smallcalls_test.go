package measure_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// rare is an export that differs in one row, one length or one padding.
type rare struct {
	name   string
	models []string // one for each route that it is tried on; nil is all three
	change func(p patient)
}

type patient struct{ *kit.Patient }

// total is how many keys a call has, new how many of them are new.
func (p patient) total() string {
	if p.Sites[0].Key.Cache == nil {
		return p.new()
	}
	return p.Op("Add", p.Past(), p.new())
}

func (p patient) new() string { return p.Size("input_ids", 1) }

// keys are the places of all keys, [total], and queries those of the new tokens, [length, 1].
func (p patient) keys() string { return p.Op("Range", p.Int(0), p.total(), p.Int(1)) }

func (p patient) queries() string {
	first := p.Int(0)
	if p.Sites[0].Key.Cache != nil {
		first = p.Past()
	}
	return p.Op("Unsqueeze", p.Op("Range", first, p.total(), p.Int(1)), p.Ints(1))
}

// shownIf shows keys where a condition holds that broadcasts to the scores, hiddenIf hides them.
func (p patient) shownIf(condition string) {
	p.change(func(scores, hidden string) string { return p.Op("Where", condition, scores, hidden) })
}

func (p patient) hiddenIf(condition string) {
	p.change(func(scores, hidden string) string {
		return p.Op("Where", condition, p.Op("Add", scores, p.Float(-1e9)), hidden)
	})
}

// change makes the softmax's input of the scores and of what the export gives.
func (p patient) change(of func(scores, hidden string) string) {
	for _, s := range p.Sites {
		p.Into(s.Softmax, 0, func(old string) string { return of(s.Scores(), old) })
	}
}

// padding changes what the mask's nodes read of the padding.
func (p patient) padding(of func(mask string) string) { p.After("attention_mask", of) }

// positions changes the positions that query and key are rotated by.
func (p patient) positions(of func(old string) string) { p.After("position_ids", of) }

func (p patient) is(op, value string, number int64) string { return p.Op(op, value, p.Int(number)) }

var (
	routes  = []string{"llama__dynamo18", "llama__optimum", "llama__dynamo18-nocache"}
	cached  = routes[:2]
	indexed = []string{"llama__dynamo18"}
	windows = []string{"gemma2__dynamo18-eager", "mistral__dynamo18-eager"}
)

// rares are the mutants that were once rewritten wrongly (the first seven: a mask that shows in rare rows), and more.
var rares = []rare{
	{"later keys beyond 600 tokens", nil, func(p patient) { p.shownIf(p.is("Greater", p.total(), 600)) }},
	{"later keys beyond 100000 tokens", nil, func(p patient) { p.shownIf(p.is("Greater", p.total(), 100_000)) }},
	{"later keys in one row", nil, func(p patient) { p.shownIf(p.is("Equal", p.queries(), 431)) }},
	{"one later key", nil, func(p patient) {
		p.shownIf(p.Op("And", p.is("Equal", p.queries(), 431), p.is("Equal", p.keys(), 433)))
	}},
	{"a key that no query sees", nil, func(p patient) { p.hiddenIf(p.is("Equal", p.keys(), 577)) }},
	{"a query that sees nothing but the first key", nil, func(p patient) {
		p.hiddenIf(p.Op("And", p.is("Equal", p.queries(), 577), p.is("Greater", p.keys(), 0)))
	}},
	{"one distance", nil, func(p patient) { p.hiddenIf(p.is("Equal", p.Op("Sub", p.queries(), p.keys()), 700)) }},

	{"later keys with seven tokens", nil, func(p patient) { p.shownIf(p.is("Equal", p.total(), 7)) }},
	{"later keys with a thousand tokens", nil, func(p patient) { p.shownIf(p.is("Equal", p.total(), 1000)) }},
	{"later keys behind three cached ones", cached, func(p patient) { p.shownIf(p.is("Equal", p.Past(), 3)) }},
	{"later keys in calls of six", nil, func(p patient) { p.shownIf(p.is("Equal", p.new(), 6)) }},
	{"a batch of three", nil, func(p patient) { p.shownIf(p.is("Equal", p.Size("input_ids", 0), 3)) }},
	{"the first key in calls of five", nil, func(p patient) {
		p.hiddenIf(p.Op("And", p.is("Equal", p.new(), 5), p.Op("And", p.is("Equal", p.keys(), 0), p.is("Greater", p.queries(), 0))))
	}},
	{"the own key of the eighth token", nil, func(p patient) {
		p.hiddenIf(p.Op("And", p.is("Equal", p.queries(), 7), p.is("Equal", p.keys(), 7)))
	}},
	{"keys that count less with four tokens", nil, func(p patient) {
		p.change(func(_, hidden string) string {
			few := p.Op("And", p.is("Equal", p.total(), 4), p.is("Equal", p.keys(), 0))
			return p.Op("Add", hidden, p.Op("Where", few, p.Float(-0.5), p.Float(0)))
		})
	}},
	{"padding that is not hidden with six tokens", nil, func(p patient) {
		p.padding(func(mask string) string {
			return p.Op("Where", p.is("Equal", p.Size(mask, 1), 6), p.Op("Add", p.Op("Mul", mask, p.Int(0)), p.Int(1)), mask)
		})
	}},
	{"padding in the last place", nil, func(p patient) {
		p.padding(func(mask string) string {
			last := p.Op("Sub", p.Size(mask, 1), p.Int(1))
			return p.Op("Where", p.Op("Equal", p.Op("Range", p.Int(0), p.Size(mask, 1), p.Int(1)), last), p.Int(1), mask)
		})
	}},
	{"two padded tokens in front of three", nil, func(p patient) {
		p.padding(func(mask string) string {
			count := p.Op("ReduceSum", mask, p.Ints(1))
			both := p.Op("And", p.is("Equal", count, 3), p.is("Equal", p.Size(mask, 1), 5))
			first := p.Op("Equal", p.Op("Slice", mask, p.Ints(0), p.Ints(1), p.Ints(1)), p.Int(0))
			return p.Op("Where", p.Op("And", both, first), p.Int(1), mask)
		})
	}},
	{"padding of three tokens", nil, func(p patient) {
		p.padding(func(mask string) string {
			return p.Op("Where", p.is("Equal", p.Op("ReduceSum", mask, p.Ints(1)), 3), p.Int(1), mask)
		})
	}},
	{"the padding of the row before", nil, func(p patient) {
		p.padding(func(mask string) string {
			rest := p.Op("Slice", mask, p.Ints(1), p.Ints(1<<40), p.Ints(0))
			return p.Node("Concat", []string{rest, p.Op("Slice", mask, p.Ints(0), p.Ints(1), p.Ints(0))}, onnx.IntAttr("axis", 0))
		})
	}},
	{"the padding of the first row", nil, func(p patient) {
		p.padding(func(mask string) string {
			return p.Op("Expand", p.Op("Slice", mask, p.Ints(0), p.Ints(1), p.Ints(0)), p.Op("Shape", mask))
		})
	}},
	{"later keys where a Range is not empty", nil, func(p patient) {
		beyond := p.Op("Range", p.Int(0), p.Op("Sub", p.total(), p.Int(1000)), p.Int(1))
		p.shownIf(p.is("Greater", p.Size(beyond, 0), 0))
	}},
	{"later keys where a Slice cuts", nil, func(p patient) {
		first := p.Op("Unsqueeze", p.Op("Sub", p.total(), p.Int(1000)), p.Ints(0))
		cut := p.Op("Slice", p.keys(), first, p.Ints(1<<40), p.Ints(0))
		p.shownIf(p.Op("Less", p.Size(cut, 0), p.total()))
	}},
	{"later keys where floats are rounded", nil, func(p patient) {
		key := p.Cast(p.keys(), onnx.Float)
		large := p.Op("Mul", key, p.Float(8192))
		back := p.Op("Sub", p.Op("Add", large, key), large)
		p.shownIf(p.Op("Not", p.Op("Equal", back, key)))
	}},
	{"later keys where a type wraps", nil, func(p patient) {
		p.shownIf(p.Op("Less", p.Cast(p.Cast(p.keys(), onnx.Int16), onnx.Int64), p.Int(0)))
	}},
	{"later keys where a shape is chosen", nil, func(p patient) {
		long := p.Op("Where", p.is("Equal", p.total(), 1000), p.Ints(2), p.Ints(1))
		p.shownIf(p.is("Greater", p.Size(p.Op("ConstantOfShape", long), 0), 1))
	}},
	{"a key that is read from the end", nil, func(p patient) { // a negative index counts from there
		at := p.Op("Sub", p.keys(), p.Int(600))
		p.hiddenIf(p.Op("Less", p.Op("Gather", p.keys(), p.Op("Max", at, p.Op("Neg", p.total()))), p.Op("Sub", p.keys(), p.Int(600))))
	}},
	{"a window that is one wider for one query", windows, func(p patient) {
		p.change(func(scores, hidden string) string {
			edge := p.is("Equal", p.Op("Sub", p.queries(), p.keys()), 8)
			return p.Op("Where", p.Op("And", edge, p.is("Equal", p.queries(), 1008)), scores, hidden)
		})
	}},
	{"a window with a far key", windows, func(p patient) { p.shownIf(p.is("Equal", p.Op("Sub", p.queries(), p.keys()), 3000)) }},
	{"positions that are one off in calls of six", indexed, func(p patient) {
		p.positions(func(old string) string {
			return p.Op("Where", p.is("Equal", p.new(), 6), p.Op("Add", old, p.Int(1)), old)
		})
	}},
	{"positions that are one off behind two cached tokens", indexed, func(p patient) {
		p.positions(func(old string) string {
			return p.Op("Where", p.is("Equal", p.Past(), 2), p.Op("Add", old, p.Int(1)), old)
		})
	}},
	{"positions that stand still in the second call", indexed, func(p patient) {
		p.positions(func(old string) string {
			second := p.Op("And", p.is("Equal", p.Past(), 5), p.is("Equal", p.new(), 1))
			return p.Op("Where", second, p.Op("Sub", old, p.Int(1)), old)
		})
	}},
	{"positions that are others with 2000 tokens", indexed, func(p patient) {
		p.positions(func(old string) string {
			return p.Op("Where", p.is("Greater", p.total(), 2000), p.Op("Add", old, p.Int(3)), old)
		})
	}},
}

// Small calls alone, without any random number, tell each of these from its export.
func TestSmallCallsTellRareRows(t *testing.T) {
	testruntime.Require(t)
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string][]measure.Parts{}
	for _, name := range append(routes, windows...) {
		ev, sites := opened(t, eng, export(t, name).Model)
		for _, s := range sites {
			p, err := measure.MeasureParts(t.Context(), ev, s)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if known, err := measure.CompareSmallCalls(t.Context(), ev, s, p); err != nil || !known {
				t.Errorf("%s itself: known for any number of tokens: %v, %v", name, known, err)
			}
			parts[name] = append(parts[name], p)
		}
	}
	for i, c := range rares {
		models := c.models
		if models == nil {
			models = routes
		}
		name := models[i%len(models)]
		t.Run(c.name+"/"+name, func(t *testing.T) {
			p := patient{export(t, name)}
			c.change(p)
			if err := ir.Order(p.Graph); err != nil {
				t.Fatal(err)
			}
			ev, sites := opened(t, eng, p.Model)
			for i, s := range sites {
				if known, err := measure.CompareSmallCalls(t.Context(), ev, s, parts[name][i]); err != nil || !known {
					t.Log(known, err)
					return
				}
			}
			t.Error("it is said to be the export for any number of tokens")
		})
	}
}

// export opens a model of testdata to be changed.
func export(t *testing.T, name string) *kit.Patient {
	return kit.PatientAt(t, filepath.Join("../../../testdata/models", name, "model.onnx"))
}

// opened returns the sites of a model and what evaluates them.
func opened(t *testing.T, eng engine.Engine, m *onnx.Model) (*eval.Evaluator, []*site.Sized) {
	t.Helper()
	scopes, err := site.Scopes(m)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	var sites []*site.Site
	for _, c := range scopes[0].Found {
		s, refusal := scopes[0].Delimit(c)
		if refusal != nil {
			t.Fatal(refusal)
		}
		values, sites = append(values, s.SizedValues()...), append(sites, s)
	}
	table, err := eval.MeasureShapes(context.Background(), eng, scopes[0].View, ir.Unique(values))
	if err != nil {
		t.Fatal(err)
	}
	sized, table := site.Size(sites, table)
	return &eval.Evaluator{Graph: scopes[0].View, Loader: eval.Loader{Engine: eng, Table: table}}, sized
}
