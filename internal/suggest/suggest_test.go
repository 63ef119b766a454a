package suggest_test

import (
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/suggest"
)

func TestNearest(t *testing.T) {
	names := []string{"none", "linear", "yarn", "ntk-by-parts", "sliding-window"}
	for word, want := range map[string]string{
		"yarm": "yarn", "yran": "yarn", "YaRN": "yarn", "lineer": "linear", "ntkbyparts": "ntk-by-parts",
		"sliding_windows": "sliding-window", "attention": "", "": "", "zzzz": "",
	} {
		if got := suggest.Nearest(word, names); got != want {
			t.Errorf("%q: %q, %q was expected", word, got, want)
		}
	}
}
