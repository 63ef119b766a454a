package customop_test

import (
	"math"
	"slices"
	"sync"
	"testing"
)

// The same bits from 1, 2 and 3 threads and from a second run.
func TestThreadsDoNotChangeTheResult(t *testing.T) {
	for _, name := range []string{"long prefill", "long decode", "bands", "left padding", "window"} {
		t.Run(name, func(t *testing.T) {
			p := filled(cases()[name], 3)
			in := feedsOf(p, false)
			var first map[string]tensor
			for _, threads := range []int{1, 2, 3, 2} {
				s, err := newSession(t, nodeOf(t, p), typesOf(in), threads)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					got, err := s.run(in)
					if err != nil {
						t.Fatal(err)
					}
					if first == nil {
						first = got
					}
					same(t, first, got)
				}
			}
		})
	}
}

// Runs of different shapes at the same time on one session.
func TestConcurrentRuns(t *testing.T) {
	a := attention(4, 2, 64)
	type job struct {
		in   feeds
		want map[string]tensor
	}
	var jobs []job
	node := nodeOf(t, problem(a, 1, 1, 1))
	s, err := newSession(t, node, typesOf(feedsOf(filled(problem(a, 1, 1, 1), 0), false)), 2)
	if err != nil {
		t.Fatal(err)
	}
	for i, shape := range [][3]int{{1, 200, 3}, {3, 1, 150}, {2, 31, 64}, {1, 1, 1500}} {
		p := filled(problem(a, shape[0], shape[1], shape[2]), uint64(i))
		in := feedsOf(p, false)
		want, err := s.run(in)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, p, false, want)
		jobs = append(jobs, job{in, want})
	}
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			j := jobs[i%len(jobs)]
			for range 20 {
				got, err := s.run(j.in)
				if err != nil {
					t.Error(err)
					return
				}
				same(t, j.want, got)
			}
		})
	}
	wait.Wait()
}

func same(t tester, want, got map[string]tensor) {
	t.Helper()
	for name, w := range want {
		g := got[name]
		if !slices.Equal(w.dims, g.dims) || !slices.Equal(w.floats, g.floats) {
			t.Errorf("%s is not the same", name)
		}
	}
}

// A shared row of positions or mask serves the whole batch.
func TestOneRowForTheBatch(t *testing.T) {
	p := filled(leftPadded(problem(attention(4, 2, 32), 3, 20, 0), 6), 4)
	in := feedsOf(p, false)
	s, err := newSession(t, nodeOf(t, p), typesOf(in), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"position_ids", "attention_mask"} {
		in[name] = integers(in[name].integers[:20], 1, 20)
	}
	got, err := s.run(in)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, p, false, got)
}

// Any number but 0 shows a key.
func TestMaskOfOtherNumbers(t *testing.T) {
	p := filled(holes(problem(attention(4, 2, 32), 2, 20, 5), 4), 4)
	in := feedsOf(p, true)
	for i, m := range in["attention_mask"].integers {
		in["attention_mask"].integers[i] = m * []int64{1, -7, 1 << 40}[i%3]
	}
	s, err := newSession(t, nodeOf(t, p), typesOf(in), 1)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.run(in)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, p, true, got)
}

// An empty cache is no cache, and outputs that nobody asks for may be absent.
func TestEmptyPastAndAbsentOutputs(t *testing.T) {
	p := filled(problem(attention(4, 2, 32), 2, 20, 0), 4)
	in := feedsOf(p, false)
	want := solve(t, p, false)

	node := nodeOf(t, filled(problem(attention(4, 2, 32), 2, 20, 1), 4)) // with past inputs
	in["past_key"], in["past_value"] = floats(nil, 2, 2, 0, 32), floats(nil, 2, 2, 0, 32)
	s, err := newSession(t, node, typesOf(in), 1)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.run(in)
	if err != nil {
		t.Fatal(err)
	}
	same(t, want, got)

	node = nodeOf(t, p)
	node.Outputs = node.Outputs[:1]
	if s, err = newSession(t, node, typesOf(in), 1); err != nil {
		t.Fatal(err)
	}
	if got, err = s.run(in); err != nil {
		t.Fatal(err)
	}
	same(t, map[string]tensor{"output": want["output"]}, got)

	node = nodeOf(t, p)
	node.Outputs[1] = "" // present_value alone
	if s, err = newSession(t, node, typesOf(in), 1); err != nil {
		t.Fatal(err)
	}
	if got, err = s.run(in); err != nil {
		t.Fatal(err)
	}
	same(t, map[string]tensor{"output": want["output"], "present_value": want["present_value"]}, got)
}

// A row of a fixed cache has the same bits alone and beside others. With few rows and 1,024 keys or more the
// kernel cuts the keys by the longest row and the number of rows, so sums are rounded in another order.
func TestRowsEqualAlone(t *testing.T) {
	hostOnly(t, "how many parts a row of keys is cut into depends on the batch there")
	for name, f := range map[string]fixed{
		"decode":      {rows: fixedRows(problem(attention(4, 2, 64), 1, 1, 0), 301, 0, 17, 600, 301), capacity: 640},
		"long decode": {rows: fixedRows(problem(attention(9, 3, 64), 1, 1, 0), 4097, 3, 3000), capacity: 5000},
		"chunk":       {rows: fixedRows(problem(attention(4, 2, 64), 1, 29, 0), 90, 3), capacity: 131},
	} {
		f := f.fill(7)
		run := func(f fixed) map[string]tensor {
			in := f.feeds(false)
			s, err := newSession(t, f.node(t), typesOf(in), 2)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.run(in)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		together := run(f)
		for b := range f.rows {
			alone := f
			alone.rows = f.rows[b : b+1]
			got, want := run(alone)["output"].floats, together["output"].row(b).floats
			if f.maxPast() < 1024 && !slices.Equal(got, want) {
				t.Errorf("%s: row %d has other bits beside others", name, b)
			}
			largest := float64(slices.Max(want) - slices.Min(want))
			for i := range got {
				if off := math.Abs(float64(got[i] - want[i])); !(off <= 1e-6*largest) {
					t.Fatalf("%s: row %d is off by %g of a range of %g beside others", name, b, off, largest)
				}
			}
		}
	}
}
