package testsample

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestSpread(t *testing.T) {
	for n, want := range map[int][]int{1: {0}, 3: {0, 3, 6}, 5: {0, 2, 4, 6, 8}, 10: {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}} {
		if got := spread(10, n); !slices.Equal(got, want) {
			t.Errorf("%d of 10 are %v, %v was expected", n, got, want)
		}
	}
}

// asked makes TestAsked try something in a process of its own.
const asked = "TESTSAMPLE_ASKED"

// TestAsked does nothing by itself.
func TestAsked(t *testing.T) {
	if os.Getenv(asked) == "" {
		return
	}
	cases := []int{8, 7, 6, 5, 4, 3, 2, 1}
	t.Log("of a list", Of(t, cases, 4))
	t.Log("of a short list", Of(t, cases[:5], 5))
	t.Log("by name", slices.Sorted(maps.Keys(OfMap(t, map[string]int{"d": 4, "a": 1, "c": 3}, 1))))
	t.Log("times", Times(t, 100, 10))
	for name, skip := range map[string]func(testing.TB, string){"all": All, "every": Long} {
		t.Run(name, func(t *testing.T) {
			skip(t, "it is large")
			t.Log("to the end of", name)
		})
	}
}

func TestSample(t *testing.T) {
	for _, c := range []struct {
		flag, every string
		want        []string
	}{
		{"-test.short", "", []string{
			"of a list [8 6 4 2]", "left to make test-every: 4 of 8 cases", "of a short list [8 7 6 5 4]", "by name [a]", "2 of 3 cases", "times 10", "90 of 100 cases",
			"left to make test-all: it is large", "left to make test-every: it is large",
		}},
		{"-test.short", "1", []string{"left to make test-every: 4 of 8 cases", "left to make test-every: it is large"}},
		{"-test.v", "", []string{
			"of a list [8 6 4 2]", "left to make test-every: 4 of 8 cases", "by name [a]", "left to make test-every: 2 of 3 cases", "times 10", "90 of 100 cases",
			"to the end of all", "left to make test-every: it is large",
		}},
		{"-test.v", "1", []string{"of a list [8 7 6 5 4 3 2 1]", "of a short list [8 7 6 5 4]", "by name [a c d]", "times 100", "to the end of all", "to the end of every"}},
	} {
		command := exec.Command(os.Args[0], "-test.run=^TestAsked$", "-test.v", c.flag)
		command.Env = append(os.Environ(), asked+"=1", Every+"="+c.every)
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, text := range c.want {
			if !strings.Contains(string(out), text) {
				t.Errorf("%s, %q: it does not say %q:\n%s", c.flag, c.every, text, out)
			}
		}
		if strings.Contains(string(out), "SKIP") == (c.flag == "-test.v" && c.every != "") {
			t.Errorf("%s, %q: %s", c.flag, c.every, out)
		}
	}
}
