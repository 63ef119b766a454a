package jinja

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Limits of one rendering.
const (
	// MaxSteps bounds what a rendering does, and with it what a text may have: a step
	// is a node that is evaluated, a value that is copied, or 16 bytes of text that are
	// made. A conversation of a megabyte takes about a million.
	MaxSteps = 10_000_000
	// maxDepth bounds how deep macros, recursive loops and values are in one another.
	maxDepth = 100
)

// machine is what one rendering has.
type machine struct {
	steps   int
	depth   int
	line    int
	now     time.Time
	globals map[string]any
	filters map[string]valueFilter
	tests   map[string]valueTest
}

// scope holds the variables of a body that is being rendered.
type scope struct {
	values map[string]any
	outer  *scope
}

// frame is where a statement stands: its variables, and where its text goes.
type frame struct {
	*machine
	scope *scope
	out   *strings.Builder
}

// Render renders with the variables of these names. Now is the time that
// strftime_now tells.
//
// A variable may be nil, a bool, an int, an int64, a float64, a string, a List or
// []any, a *Dict or map[string]any, and hold the same. The keys of a Go map are
// sorted; a *Dict keeps its order. FromJSON makes such values of everything else
// that encoding/json writes. Values are read, and never changed.
//
// The error of a template that refuses its variables by raise_exception wraps
// ErrRaised. Every other one says in one sentence what is not supported or what
// Python would refuse as well.
func (t *Template) Render(variables map[string]any, now time.Time) (result string, err error) {
	m := &machine{now: now, line: 1, globals: newGlobals(), filters: t.filters, tests: t.tests}
	defer func() {
		if err != nil {
			err = fmt.Errorf("line %d: %w", m.line, err)
		}
	}()
	defer recoverTo(&err)
	top := &scope{values: map[string]any{}}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		top.values[name] = m.given(variables[name])
	}
	f := &frame{machine: m, scope: top, out: &strings.Builder{}}
	f.inner(nil, nil).run(t.body)
	return f.out.String(), nil
}

func (m *machine) spend(steps int) {
	m.steps += steps
	if m.steps > MaxSteps || steps < 0 {
		failf("the template takes more than %d steps, so it was stopped", MaxSteps)
	}
}

// made counts a text that was made.
func (m *machine) made(text string) string {
	m.spend(len(text) / 16)
	return text
}

func (m *machine) enter() {
	m.depth++
	if m.depth > maxDepth {
		failf("macros, loops or values are more than %d deep, which is not supported", maxDepth)
	}
}

func (m *machine) leave() { m.depth-- }

// inner is a frame within f, with more variables. It writes to out, or where f
// does.
func (f *frame) inner(values map[string]any, out *strings.Builder) *frame {
	if values == nil {
		values = map[string]any{}
	}
	if out == nil {
		out = f.out
	}
	return &frame{f.machine, &scope{values, f.scope}, out}
}

func (f *frame) lookup(name string) any {
	for s := f.scope; s != nil; s = s.outer {
		if v, ok := s.values[name]; ok {
			return v
		}
	}
	if v, ok := f.globals[name]; ok {
		return v
	}
	return undefined{name}
}

func (f *frame) write(text string) {
	f.spend(1)
	f.out.WriteString(f.made(text))
}

// run renders a body whose frame is f.
func (f *frame) run(b *block) signal {
	for _, name := range b.hidden {
		f.scope.values[name] = undefined{name}
	}
	return f.statements(b)
}

// statements renders a body, or a part of one: that of an if.
func (f *frame) statements(b *block) signal {
	for _, s := range b.statements {
		f.spend(1)
		if next := s.exec(f); next != signalNone {
			return next
		}
	}
	return signalNone
}

// capture renders a body into a text.
func (f *frame) capture(b *block, values map[string]any) string {
	f.enter()
	defer f.leave()
	inner := f.inner(values, &strings.Builder{})
	inner.run(b)
	return inner.out.String()
}
