package coverage

import "testing"

// Scalings that transformers gives every layer are asked for all, and those of
// layers without a window as a user writes them.
func TestAsked(t *testing.T) {
	for method, want := range map[string]string{"linear:factor=4": "linear:factor=4@all", "linear:factor=4 of full_attention": "linear:factor=4"} {
		if got := asked(method); got != want {
			t.Errorf("%q is asked for as %q, %q was expected", method, got, want)
		}
	}
}
