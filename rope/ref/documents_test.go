package ref_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// withDocuments gives a drawn problem document ids, in any order, and a mask over them.
func withDocuments(t *rapid.T, p ref.Problem) ref.Problem {
	p.Attention.Mask.Documents = rapid.SampledFrom([]rope.Documents{rope.IntraDocument, rope.AnchorDocument}).Draw(t, "rule")
	p.Documents = rapid.SliceOfN(rapid.Int64Range(-1, 3), p.Batch*p.Length, p.Batch*p.Length).Draw(t, "ids")
	return p
}

// row cuts one batch row out of a problem without past.
func row(p ref.Problem, b int) ref.Problem {
	a := p.Attention
	cut := func(data []float64, n int) []float64 {
		if data == nil {
			return nil
		}
		return data[b*n : (b+1)*n]
	}
	one := ref.Problem{Attention: a, Batch: 1, Length: p.Length, ValueSize: p.ValueSize,
		Query: cut(p.Query, a.Heads*p.Length*a.HeadSize), Key: cut(p.Key, a.KVHeads*p.Length*a.HeadSize), Value: cut(p.Value, a.KVHeads*p.Length*p.ValueSize),
		Bias: cut(p.Bias, a.Heads*p.Length*p.Length), BiasBeforeSoftcap: cut(p.BiasBeforeSoftcap, a.Heads*p.Length*p.Length)}
	if p.Documents != nil {
		one.Documents = p.Documents[b*p.Length : (b+1)*p.Length]
	}
	if p.KeyMask != nil {
		one.KeyMask = p.KeyMask[b*p.Length : (b+1)*p.Length]
	}
	if p.Positions != nil {
		one.Positions = p.Positions[b*p.Length : (b+1)*p.Length]
	}
	return one
}

// Masks over documents by a table of who sees whom, positions by counting the
// tokens of each document.
func TestRelativeDocuments(t *testing.T) {
	// query's id and key's id, −1 to 3, for the anchor's rule and without it
	const (
		readerRow = "11111"
		anchorRow = "01000"
	)
	tables := map[rope.Documents][]string{
		rope.IntraDocument:  {readerRow, anchorRow, "00100", "00010", "00001"},
		rope.AnchorDocument: {readerRow, anchorRow, "01100", "01010", "01001"},
	}
	rapid.Check(t, func(t *rapid.T) {
		p := withDocuments(t, draw(t))
		m := &p.Attention.Mask
		m.Restart = rapid.Bool().Draw(t, "restart")
		m.Start = rapid.Int64Range(0, 3).Draw(t, "start")
		for range p.Batch * p.Length {
			p.KeyMask = append(p.KeyMask, rapid.IntRange(0, 4).Draw(t, "real") > 0)
		}
		p.Positions = positions(p, 40)
		for b := range p.Batch {
			one := row(p, b)
			seen := map[int64]float64{}
			at := make([]float64, p.Length)
			byIndex := *m // its first keys and what is hidden among them
			for i, id := range one.Documents {
				at[i] = float64(40 + i)
				if m.Restart && id >= 0 {
					at[i] = seen[id]
					if id > 0 {
						at[i] += float64(m.Start)
					}
				}
				if one.KeyMask[i] {
					seen[id]++
				} else if int64(i) < byIndex.FirstKeys {
					byIndex.FirstKeys++
				}
			}
			want, logs := relative(one, func(i, j int) (float64, bool) {
				allowed := tables[m.Documents][one.Documents[i]+1][one.Documents[j]+1] == '1'
				return at[i] - at[j], visible(byIndex, i, j) && one.KeyMask[j] && allowed
			})
			got := mustRun(t, one)
			if d := max(distance(got.Output, want), distance(got.LogSumExp, logs)); d > 1e-10 {
				t.Fatalf("row %d differs by %g", b, d)
			}
		}
	})
}

// Maps that go by the distance alone do in a packed document what they do in the document by
// itself, without positions that restart.
func TestPackedDocumentsUnderMaps(t *testing.T) {
	const length = 30
	a := rope.Attention{Heads: 2, KVHeads: 1, HeadSize: 8, Mask: rope.Mask{Causal: true}, Encoding: rope.Encoding{Frequencies: []float64{1, 0.5, 0.25, 0.125}, ExactAngles: true}}
	for _, text := range []string{"string:shift=5,window=2", "rerope:window=4", "leaky-rerope:window=4,factor=4"} {
		a := mustApply(t, rope.PositionsAxis, text, a, rope.Context{Length: length, Original: 12})
		p := filled(a, length)
		p.Attention = mustApply(t, rope.MaskAxis, "intra-document", a, rope.Context{})
		for i := range length {
			p.Documents = append(p.Documents, []int64{1, 2, 3}[i/11])
		}
		packed := mustRun(t, p)
		for from := 0; from < length; from += 11 {
			to := min(from+11, length)
			one := filled(a, length)
			one.Length = to - from
			one.Query, one.Key, one.Value = places(p.Query, length, a.HeadSize, from, to), places(p.Key, length, a.HeadSize, from, to), places(p.Value, length, p.ValueSize, from, to)
			want := mustRun(t, one)
			if off := distance(places(packed.Output, length, p.ValueSize, from, to), want.Output); off > 1e-12 {
				t.Errorf("%s: the document from %d on is off by %g", text, from, off)
			}
		}
	}
}

// Documents packed into one row give what each gives by itself, positions
// restarted or not, and a reader after them what it gives without a mask.
func TestPackedDocuments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		p.Batch = 1
		p = row(p, 0)
		p.Bias, p.BiasBeforeSoftcap, p.Attention.Mask.Window = nil, nil, 0
		a := p.Attention
		plain := mustRun(t, p)
		p.Attention.Mask.Documents = rope.IntraDocument
		p.Attention.Mask.Restart = rapid.Bool().Draw(t, "restart")
		p.Attention.Mask.Start = rapid.Int64Range(0, 9).Draw(t, "start")
		last := p.Length - 1
		p.Documents = make([]int64, p.Length)
		p.Documents[last] = -1
		var ends []int
		for from := 0; from < last; {
			to := rapid.IntRange(from+1, last).Draw(t, "document end")
			ends = append(ends, to)
			for i := from; i < to; i++ {
				p.Documents[i] = int64(len(ends))
			}
			from = to
		}
		packed := mustRun(t, p)
		from := 0
		for _, to := range ends {
			alone := mustRun(t, ref.Problem{
				Attention: a, Batch: 1, Length: to - from, ValueSize: p.ValueSize,
				Query: places(p.Query, p.Length, a.HeadSize, from, to),
				Key:   places(p.Key, p.Length, a.HeadSize, from, to),
				Value: places(p.Value, p.Length, p.ValueSize, from, to),
			})
			if d := distance(places(packed.Output, p.Length, p.ValueSize, from, to), alone.Output); d > 1e-10 {
				t.Fatalf("document at %d to %d differs by %g", from, to, d)
			}
			from = to
		}
		if packed.Visible[last] != p.Length {
			t.Fatalf("the reader sees %d of %d keys", packed.Visible[last], p.Length)
		}
		if !p.Attention.Mask.Restart {
			reader := func(r ref.Result) []float64 { return places(r.Output, p.Length, p.ValueSize, last, last+1) }
			if d := distance(reader(packed), reader(plain)); d != 0 {
				t.Fatalf("the reader differs by %g", d)
			}
		}
	})
}

// Rows with pasts of their own, in buffers with more room, give what each row
// gives by itself after its own past; the rest of the buffers is unchanged and
// never read.
func TestPastsOfRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawRows(t)
		a := p.Attention
		step := rapid.IntRange(0, p.Length).Draw(t, "step")
		capacity := p.Length + rapid.IntRange(0, 3).Draw(t, "room")
		rng := rand.New(rand.NewPCG(4, 4))
		q := ref.Problem{
			Attention: a, Batch: p.Batch, Length: step, Past: capacity, ValueSize: p.ValueSize,
			PastKey:   normal(rng, p.Batch*a.KVHeads*capacity*a.HeadSize),
			PastValue: normal(rng, p.Batch*a.KVHeads*capacity*p.ValueSize),
		}
		if p.Documents != nil {
			q.Documents = []int64{}
		}
		if rapid.Bool().Draw(t, "larger present") {
			q.PresentRows = capacity + 2
		}
		width := 0
		for range p.Batch {
			q.Pasts = append(q.Pasts, rapid.IntRange(0, p.Length-step).Draw(t, "past"))
			width = max(width, q.Pasts[len(q.Pasts)-1]+step)
		}
		var want []ref.Result
		for b, past := range q.Pasts {
			one := row(p, b)
			addRow(t, &q, one, b, width)
			want = append(want, mustRun(t, firstTokens(one, past+step)))
		}
		got := mustRun(t, q)
		for b := range want {
			compareRow(t, q, got, want[b], b)
		}
	})
}

// drawRows is a batch of rows with padding anywhere, and one of the masks and
// position maps that depend on where a row begins.
func drawRows(t *rapid.T) ref.Problem {
	p := draw(t)
	p.Bias, p.BiasBeforeSoftcap = nil, nil
	p.Attention.Cache = rapid.SampledFrom([]rope.Cache{rope.Rotated, rope.Raw}).Draw(t, "cache")
	if rapid.Bool().Draw(t, "documents") {
		p = withDocuments(t, p)
		p.Attention.Mask.Restart = rapid.Bool().Draw(t, "restart")
	} else if rapid.Bool().Draw(t, "banded") {
		p.Attention.Bands = stringBands(rapid.Int64Range(1, 8).Draw(t, "S"), 0)
	}
	for range p.Batch * p.Length {
		p.KeyMask = append(p.KeyMask, rapid.IntRange(0, 4).Draw(t, "real") > 0)
	}
	return p
}

// firstTokens is a row's first tokens as one call without a past.
func firstTokens(one ref.Problem, to int) ref.Problem {
	a := one.Attention
	r := ref.Problem{
		Attention: a, Batch: 1, Length: to, ValueSize: one.ValueSize,
		Query: places(one.Query, one.Length, a.HeadSize, 0, to), Key: places(one.Key, one.Length, a.HeadSize, 0, to),
		Value: places(one.Value, one.Length, one.ValueSize, 0, to), KeyMask: one.KeyMask[:to],
	}
	if one.Documents != nil {
		r.Documents = one.Documents[:to]
	}
	return r
}

// addRow makes a row's tokens after its past the row b of q, whose buffers get
// the past. The mask and the document ids are filled up to a width.
func addRow(t *rapid.T, q *ref.Problem, one ref.Problem, b, width int) {
	a, capacity, past := q.Attention, q.Past, q.Pasts[b]
	end := past + q.Length
	before := mustRun(t, firstTokens(one, past))
	for kv := range a.KVHeads {
		copy(q.PastKey[(b*a.KVHeads+kv)*capacity*a.HeadSize:], before.PresentKey[kv*past*a.HeadSize:(kv+1)*past*a.HeadSize])
		copy(q.PastValue[(b*a.KVHeads+kv)*capacity*q.ValueSize:], before.PresentValue[kv*past*q.ValueSize:(kv+1)*past*q.ValueSize])
	}
	q.Query = append(q.Query, places(one.Query, one.Length, a.HeadSize, past, end)...)
	q.Key = append(q.Key, places(one.Key, one.Length, a.HeadSize, past, end)...)
	q.Value = append(q.Value, places(one.Value, one.Length, q.ValueSize, past, end)...)
	q.KeyMask = append(q.KeyMask, append(one.KeyMask[:end:end], make([]bool, width-end)...)...)
	if one.Documents != nil {
		q.Documents = append(q.Documents, append(one.Documents[:end:end], make([]int64, width-end)...)...)
	}
}

// compareRow compares row b of a call with the row by itself.
func compareRow(t *rapid.T, q ref.Problem, got, want ref.Result, b int) {
	a, past, end := q.Attention, q.Pasts[b], q.Pasts[b]+q.Length
	heads := a.Heads * q.Length * q.ValueSize
	if d := distance(got.Output[b*heads:(b+1)*heads], places(want.Output, end, q.ValueSize, past, end)); d != 0 {
		t.Fatalf("row %d differs by %g", b, d)
	}
	rows := max(q.Past, q.PresentRows)
	n := a.KVHeads * rows * a.HeadSize
	present := got.PresentKey[b*n : (b+1)*n]
	if d := distance(places(present, rows, a.HeadSize, 0, end), want.PresentKey); d != 0 {
		t.Fatalf("row %d: present keys differ by %g", b, d)
	}
	m := a.KVHeads * q.Past * a.HeadSize
	if d := distance(places(present, rows, a.HeadSize, end, q.Past), places(q.PastKey[b*m:(b+1)*m], q.Past, a.HeadSize, end, q.Past)); d != 0 {
		t.Fatalf("row %d: the room behind its keys was written to", b)
	}
}

// The sink weighs in the denominator only, however large it is.
func TestSinks(t *testing.T) {
	p := ref.Problem{
		Attention: rope.Attention{Heads: 2, KVHeads: 1, HeadSize: 1, Sinks: []float64{0, 1000}},
		Batch:     1, Length: 1, Query: []float64{0, 0}, Key: []float64{0}, Value: []float64{8},
	}
	r := mustRun(t, p)
	if r.Output[0] != 4 || r.Output[1] != 0 || r.LogSumExp[0] != 0 || r.LogSumExp[1] != 0 {
		t.Errorf("output %v, log-sum-exp %v", r.Output, r.LogSumExp)
	}
}

func TestDocumentRefusals(t *testing.T) {
	good := func() ref.Problem {
		return ref.Problem{
			Attention: rope.Attention{
				Heads: 1, KVHeads: 1, HeadSize: 2, Mask: rope.Mask{Causal: true, Padding: true, Documents: rope.IntraDocument},
				Encoding: rope.Encoding{Frequencies: []float64{1}},
			},
			Batch: 1, Length: 2, Past: 3, Pasts: []int{1},
			Query: make([]float64, 4), Key: make([]float64, 4), Value: make([]float64, 4),
			PastKey: make([]float64, 6), PastValue: make([]float64, 6), Documents: []int64{0, 1, -1},
		}
	}
	mustRun(t, good())
	for want, spoil := range map[string]func(*ref.Problem){
		"one of them is missing":               func(p *ref.Problem) { p.Attention.Mask.Documents = rope.NoDocuments },
		"ids and a mask over documents":        func(p *ref.Problem) { p.Documents = nil },
		"document ids has 2 elements":          func(p *ref.Problem) { p.Documents = p.Documents[1:] },
		"the token at index 1 has the documen": func(p *ref.Problem) { p.Documents[1] = -2 },
		"start at position -1":                 func(p *ref.Problem) { p.Attention.Mask.Start = -1 },
		"need a mask over documents": func(p *ref.Problem) {
			p.Attention.Mask.Documents, p.Attention.Mask.Restart, p.Documents = rope.NoDocuments, true, nil
		},
		"combined with a map":           func(p *ref.Problem) { p.Attention.Mask.Restart, p.Attention.Bands = true, stringBands(2, 1) },
		"2 pasts are given":             func(p *ref.Problem) { p.Pasts = []int{1, 1} },
		"a past of 4, the cache has 3":  func(p *ref.Problem) { p.Pasts[0] = 4 },
		"do not fit into the 3 rows":    func(p *ref.Problem) { p.Pasts[0] = 2 },
		"without the pasts of the rows": func(p *ref.Problem) { p.Pasts, p.PresentRows = nil, 4 },
		"sinks has 2 elements":          func(p *ref.Problem) { p.Attention.Sinks = []float64{1, 2} },
		"bias before the softcap has 1": func(p *ref.Problem) { p.BiasBeforeSoftcap = []float64{1} },
	} {
		p := good()
		spoil(&p)
		_, err := ref.Run(p)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
