package rope_test

import (
	"testing"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// What each method makes of a mask; everything beside the mask stays.
func TestMasks(t *testing.T) {
	causal := rope.Mask{Causal: true, Padding: true}
	with := func(change func(*rope.Mask)) rope.Mask {
		m := causal
		change(&m)
		return m
	}
	windowed := with(func(m *rope.Mask) { m.Window = 1000 })
	for _, c := range []struct {
		text       string
		from, want rope.Mask
	}{
		{"keep", windowed, windowed},
		{"causal", rope.Mask{Padding: true}, causal},
		{"causal", rope.Mask{Window: 7}, rope.Mask{Causal: true, Window: 7}},
		{"sliding-window:window=512", causal, with(func(m *rope.Mask) { m.Window = 512 })},
		{"sliding-window:window=512", windowed, with(func(m *rope.Mask) { m.Window = 512 })},
		{"sliding-window:window=4096", windowed, windowed},
		{"first-keys:window=512", causal, with(func(m *rope.Mask) { m.Window, m.FirstKeys = 512, 4 })},
		{"first-keys:window=4096,count=8", windowed, with(func(m *rope.Mask) { m.Window, m.FirstKeys = 1000, 8 })},
		{"intra-document", causal, with(func(m *rope.Mask) { m.Documents = rope.IntraDocument })},
		{"intra-document-reset", causal, with(func(m *rope.Mask) { m.Documents, m.Restart = rope.IntraDocument, true })},
		{"intra-document-reset:start=1", windowed, with(func(m *rope.Mask) { m.Window, m.Documents, m.Restart, m.Start = 1000, rope.IntraDocument, true, 1 })},
		{"anchor", causal, with(func(m *rope.Mask) { m.Documents = rope.AnchorDocument })},
		{"anchor:restart=true", causal, with(func(m *rope.Mask) { m.Documents, m.Restart, m.Start = rope.AnchorDocument, true, 1 })},
		{"anchor:restart=true,start=0", causal, with(func(m *rope.Mask) { m.Documents, m.Restart = rope.AnchorDocument, true })},
		{"anchor:restart=false", causal, with(func(m *rope.Mask) { m.Documents = rope.AnchorDocument })},
	} {
		a := llama()
		a.Mask = c.from
		got, _, err := apply(t, rope.MaskAxis, c.text, a, rope.Context{})
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got.Mask != c.want {
			t.Errorf("%s: %+v becomes %+v, want %+v", c.text, c.from, got.Mask, c.want)
		}
		if got.Mask, a.Mask = (rope.Mask{}), (rope.Mask{}); len(got.Encoding.Frequencies) != len(a.Encoding.Frequencies) || got.Bands != nil || got.Scale != a.Scale {
			t.Errorf("%s changes more than the mask", c.text)
		}
	}
}
