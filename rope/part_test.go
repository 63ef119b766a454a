package rope_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// apart are parameters for methods that need some.
var apart = map[string]string{
	"theta": "rope_theta=500000", "linear": "factor=4", "ntk": "alpha=4", "dynamic": "factor=2,length=run", "yarn": "factor=4",
	"partial-ntk": "factor=4", "ntk-by-parts": "factor=4", "llama3": "factor=4,low_freq_factor=1,high_freq_factor=4", "beta-ary": "factor=4",
	"proportional": "partial_rotary_factor=0.5", "string": "shift=300", "rerope": "window=300", "leaky-rerope": "window=300,factor=4",
	"self-extend": "window=300,group=4", "dual-chunk": "chunk_size=400,local_size=100", "randomized": "range=9000",
	"sliding-window": "window=64", "first-keys": "window=64",
	"longrope": "factor=2,short_factor=" + ones + ",long_factor=" + ones, "frequencies": "inv_freq=" + ones,
}

var ones = "[" + strings.Repeat("1;", 31) + "1]"

func everySpec(t *testing.T) (list []rope.Spec) {
	t.Helper()
	for m := range rope.Methods() {
		text := m.Name
		if p := apart[m.Name]; p != "" {
			text += ":" + p
		}
		s, err := rope.ParseSpec(m.Axis, text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	return list
}

// rest is an attention without what a part of its axis sets.
func rest(a rope.Attention, p rope.Part) rope.Attention {
	switch p {
	case rope.TemperaturePart:
		a.Temperature = rope.Temperature{}
	case rope.FrequencyPart:
		a.Encoding, a.Scale, a.Cache = rope.Encoding{}, 0, 0
	case rope.DirectionPart:
		a.Mask.Causal = false
	case rope.WindowPart:
		a.Mask.Window, a.Mask.FirstKeys = 0, 0
	case rope.DocumentPart:
		a.Mask.Documents, a.Mask.Restart, a.Mask.Start = 0, false, 0
	}
	return a
}

// A method of a part changes nothing else, and two that go together give the same in both orders.
func TestParts(t *testing.T) {
	c := rope.Context{Original: 2048, Length: 4096}
	start := llama()
	start.Mask.Causal = false
	together := 0
	for _, s := range everySpec(t) {
		m, err := rope.Lookup(s.Axis, s.Name)
		if err != nil {
			t.Fatal(err)
		}
		if m.Part == rope.WholeAxis {
			if m.Axis != rope.PositionsAxis && !m.Neutral {
				t.Errorf("%v has no part", s)
			}
			continue
		}
		one, _, err := s.Apply(start, c)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(rest(one, m.Part), rest(start, m.Part)) {
			t.Errorf("%v changes more than %v", s, m.Part)
		}
		for _, other := range everySpec(t) {
			if other.Axis != s.Axis || rope.CheckTogether(s, other) != nil {
				continue
			}
			both, _, err := other.Apply(one, c)
			if err != nil {
				t.Errorf("%v, then %v: %v", s, other, err)
				continue
			}
			turned, _, err := other.Apply(start, c)
			if err == nil {
				turned, _, err = s.Apply(turned, c)
			}
			if err != nil || !reflect.DeepEqual(both, turned) {
				t.Errorf("%v and %v give another value in the other order, %v", s, other, err)
			}
			together++
		}
	}
	if together < 50 {
		t.Errorf("%d pairs go together", together)
	}
}

func TestCheckTogether(t *testing.T) {
	for _, c := range []struct{ first, second, want string }{
		{"scaling yarn:factor=4", "scaling linear:factor=2", "scaling yarn:factor=4 and linear:factor=2 cannot be combined, because both set frequencies"},
		{"scaling log-n", "scaling temperature", "both set a temperature"},
		{"scaling none", "scaling log-n", "cannot be combined; leave one of them out"},
		{"positions string", "positions rerope", "cannot be combined"},
		{"mask anchor", "mask intra-document", "both set documents"},
		{"mask sliding-window:window=8", "mask first-keys:window=9", "both set a window"},
		{"scaling yarn:factor=4", "scaling log-n", ""},
		{"mask sliding-window:window=8", "mask anchor", ""},
		{"mask first-keys:window=8", "mask causal", ""},
		{"scaling none", "mask keep", ""},
		{"positions string", "mask anchor", ""},
	} {
		var specs []rope.Spec
		for _, text := range []string{c.first, c.second} {
			axis, spec, _ := strings.Cut(text, " ")
			for _, x := range []rope.Axis{rope.ScalingAxis, rope.PositionsAxis, rope.MaskAxis} {
				if x.String() != axis {
					continue
				}
				s, err := rope.ParseSpec(x, spec)
				if err != nil {
					t.Fatal(err)
				}
				specs = append(specs, s)
			}
		}
		err := rope.CheckTogether(specs[0], specs[1])
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s and %s: %v, want %q", c.first, c.second, err, c.want)
		}
	}
}

// Specs are applied axis by axis: a temperature before frequencies, and the direction before what needs it.
func TestCompareOrder(t *testing.T) {
	last := rope.Spec{}
	for i, text := range []string{"log-n", "yarn", "string", "causal", "first-keys", "anchor"} {
		s := rope.Spec{Axis: []rope.Axis{0, 0, rope.PositionsAxis, rope.MaskAxis, rope.MaskAxis, rope.MaskAxis}[i], Name: text}
		if i > 0 && rope.CompareOrder(last, s) >= 0 {
			t.Errorf("%v is not before %v", last, s)
		}
		last = s
	}
	// first-keys with positions=cache needs the direction that causal gives.
	a := llama()
	a.Mask.Causal = false
	a, _, err := apply(t, rope.MaskAxis, "causal", a, rope.Context{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := apply(t, rope.MaskAxis, "first-keys:window=64,positions=cache", a, rope.Context{}); err != nil {
		t.Error(err)
	}
}
