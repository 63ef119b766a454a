package rope_test

import (
	"testing"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

func specs(t *testing.T, scaling, positions string) (list []rope.Spec) {
	t.Helper()
	for _, s := range []struct {
		axis rope.Axis
		text string
	}{{rope.PositionsAxis, positions}, {rope.ScalingAxis, scaling}} { // in any order
		if s.text == "" {
			continue
		}
		spec, err := rope.ParseSpec(s.axis, s.text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, spec)
	}
	return list
}

func TestReachable(t *testing.T) {
	for _, c := range []struct {
		scaling string
		c       rope.Context
		want    int64
	}{
		{"", rope.Context{Original: 2048}, 2048},
		{"", rope.Context{Length: 4096}, 0},
		{"none", rope.Context{Original: 2048}, 2048},
		{"linear:factor=4", rope.Context{Original: 2048}, 8192},
		{"linear:factor=4", rope.Context{}, 0},
		{"linear:factor=1.0001", rope.Context{Original: 2048}, 2049},
		{"linear", rope.Context{Original: 2048, Length: 5000}, 5000},
		{"linear:factor=4", rope.Context{Original: 2048, Length: 5000}, 8192},
		{"yarn:factor=4,original_max_position_embeddings=16", rope.Context{Original: 2048}, 64},
		{"ntk:alpha=2", rope.Context{Original: 2048}, 4096},
		{"proportional:partial_rotary_factor=0.5", rope.Context{Original: 2048}, 2048},
		{"log-n", rope.Context{Original: 2048}, 0},
		{"theta:rope_theta=500000", rope.Context{Original: 2048, Length: 4096}, 0},
		{"linear:factor=1e300", rope.Context{Original: 2048}, 1 << 53},
	} {
		if got := rope.Reachable(specs(t, c.scaling, "string:shift=9,window=1"), c.c); got != c.want {
			t.Errorf("%q, %+v: %d, want %d", c.scaling, c.c, got, c.want)
		}
	}
}

// A temperature beside a scaling of frequencies changes nothing of how far that reaches.
func TestReachableBeside(t *testing.T) {
	list := append(specs(t, "yarn:factor=4", ""), specs(t, "log-n", "")...)
	if got := rope.Reachable(list, rope.Context{Original: 2048}); got != 8192 {
		t.Errorf("%d, want 8192", got)
	}
}

// A map that changes no distance that the model knows is pointed out, once.
func TestUnreached(t *testing.T) {
	for _, c := range []struct {
		scaling, positions string
		c                  rope.Context
		warned             bool
	}{
		{"", "string:shift=4096", rope.Context{Original: 64}, true},
		{"", "string:shift=65,window=32", rope.Context{Original: 64}, true},
		{"", "string:shift=64,window=32", rope.Context{Original: 64}, false}, // 0 … 63 and 32 … are met
		{"", "string:shift=63,window=32", rope.Context{Original: 64}, false},
		{"", "string:shift=4096", rope.Context{}, false},
		{"", "string", rope.Context{Original: 2048, Length: 32768}, true}, // shift is 10922
		{"linear", "string", rope.Context{Original: 2048, Length: 32768}, false},
		{"linear:factor=4", "string:shift=100,window=32", rope.Context{Original: 64}, false},
		{"linear:factor=4", "string:shift=257,window=32", rope.Context{Original: 64}, true},
		{"theta:rope_theta=500000", "string:shift=256,window=32", rope.Context{Original: 64}, false},
		{"", "string:shift=4096", rope.Context{Original: 64, Length: 4096}, false}, // the method says so
		{"", "rerope:window=64", rope.Context{Original: 64}, true},
		{"", "self-extend:window=32,group=4", rope.Context{Original: 64}, false},
		{"", "dual-chunk:chunk_size=48,local_size=8", rope.Context{Original: 1}, false},
		{"", "string:shift=64,window=64", rope.Context{Original: 64}, false}, // changes nothing at all
	} {
		a, list := llama(), specs(t, c.scaling, c.positions)
		for _, s := range list {
			var err error
			if a, _, err = s.Apply(a, c.c); err != nil {
				t.Fatal(err)
			}
		}
		if got := a.Unreached(rope.Reachable(list, c.c), c.c); (got != "") != c.warned {
			t.Errorf("%q, %q, %+v: warning %q", c.scaling, c.positions, c.c, got)
		}
	}
}
