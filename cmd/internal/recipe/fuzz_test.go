package recipe_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/recipe"
	"github.com/rope-rewrite/rope-rewrite/internal/testfuzz"
)

// FuzzParse: a recipe is refused in one line that names the file and a line of it, or it is written as it
// is read again.
func FuzzParse(f *testing.F) {
	seeds := []string{
		"version: 1\nscaling: yarn:factor=4\nlayers: 3\n", "version: 1\nrope-parameters: {a: [1, {b: null}]}\n", "version: 1\nscaling:\n  - yarn:factor=4@0-3\n  - none@all\nkv: fixed:capacity=8k\ncontext: 32k\n",
		"version: 1\nrope-parameters: &a {b: &c [1, 1]}\nmask: \"anchor\"\n# end\n", "version: 1\nrope-parameters: {a: &x {b: [1]}, <<: *x, c: *x}\nrestore: true\nopset: 18\n", "version: 1\nmask: |\n  anchor\n...\n",
	}
	testfuzz.Run(f, seeds, 500, func(t testing.TB, text []byte) bool {
		r, err := recipe.Parse("r.yaml", text)
		if err != nil {
			if said := err.Error(); strings.Contains(said, "\n") || !strings.HasPrefix(said, "r.yaml:") {
				t.Errorf("the error is not one line that names the file: %q", said)
			}
			if at := (*recipe.Error)(nil); !errors.As(err, &at) || at.Line < 1 || at.Line > strings.Count(string(text), "\n")+strings.Count(string(text), "\r")+2 {
				t.Errorf("the line does not exist: %v", err)
			}
			return false
		}
		out, err := r.Text()
		if err != nil {
			t.Fatal(err)
		}
		again, err := recipe.Parse("r.yaml", out)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for i := range min(len(again.Flags), len(r.Flags)) {
			again.Flags[i].Line = r.Flags[i].Line
		}
		if !reflect.DeepEqual(again, r) {
			t.Errorf("%v became %v", r, again)
		}
		return true
	})
}
