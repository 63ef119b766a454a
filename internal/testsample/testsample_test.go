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
	cases := []int{4, 3, 2, 1}
	t.Log("of a list", Of(t, cases, 2))
	t.Log("of a short list", Of(t, cases, 4))
	t.Log("by name", slices.Sorted(maps.Keys(OfMap(t, map[string]int{"d": 4, "a": 1, "c": 3}, 2))))
	t.Log("times", Times(t, 100, 10))
	All(t, "it is large")
	t.Log("to its end")
}

func TestSample(t *testing.T) {
	for flag, want := range map[string][]string{
		"-test.short": {"of a list [4 2]", "2 of 4 cases", "of a short list [4 3 2 1]", "by name [a c]", "1 of 3 cases", "times 10", "90 of 100 cases", "left to make test-all: it is large"},
		"-test.v":     {"of a list [4 3 2 1]", "of a short list [4 3 2 1]", "by name [a c d]", "times 100", "to its end"},
	} {
		command := exec.Command(os.Args[0], "-test.run=^TestAsked$", "-test.v", flag)
		command.Env = append(os.Environ(), asked+"=1")
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, text := range want {
			if !strings.Contains(string(out), text) {
				t.Errorf("%s: it does not say %q:\n%s", flag, text, out)
			}
		}
		if strings.Contains(string(out), "SKIP") != (flag == "-test.short") {
			t.Errorf("%s: %s", flag, out)
		}
	}
}
