package validate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/validate"
)

// files are the models of a folder of testdata.
func files(t *testing.T, folder string) map[string]string {
	t.Helper()
	folder = filepath.Join("../testdata", folder)
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]string{}
	for _, e := range entries {
		list[strings.TrimSuffix(e.Name(), ".onnx")] = filepath.Join(folder, e.Name())
	}
	return list
}

// Files that were changed where random tokens do not reach are not called the same, whatever their record says.
func TestForged(t *testing.T) {
	different := []string{"in_batch2", "identity_emb_row", "tool_window70", "tool_emb_row_as_node"}
	forged := files(t, "forged")
	for _, name := range []string{"dup_init_first_row", "sparse_instead_row"} {
		if r, err := run(t, path("llama__dynamo18"), files(t, "doubles")[name], validate.Options{Length: 16}); err == nil && r.Verdict != validate.Different {
			t.Errorf("%s: %s", name, r.Verdict)
		}
	}
	for name, file := range forged {
		r, err := run(t, path("llama__dynamo18"), file, validate.Options{Length: 16})
		if err != nil {
			continue // it is refused
		}
		want := validate.NotConfirmed
		for _, d := range different {
			if d == name {
				want = validate.Different
			}
		}
		if r.Verdict != want || r.Rebuilt == nil || r.Rebuilt.First == nil {
			t.Errorf("%s: %s, want %s; %+v", name, r.Verdict, want, r.Rebuilt)
		}
		// Outputs alone are what was asked for.
		r, err = run(t, path("llama__dynamo18"), file, validate.Options{Length: 16, OutputsOnly: true})
		if err != nil || r.Verdict != validate.SameOutputs && r.Verdict != validate.Different || r.Rebuilt != nil {
			t.Errorf("%s: %v, %+v", name, err, r)
		}
	}
}

// Files that a tool saved again are what their record says.
func TestSavedAgain(t *testing.T) {
	for name, want := range map[string]validate.Verdict{"none_resaved": validate.Same, "kv_ortbasic": validate.Same, "yarn_shapes": validate.AsClaimed} {
		r, err := run(t, path("llama__dynamo18"), files(t, "honest")[name], validate.Options{Length: 16})
		if err != nil || r.Verdict != want || (len(r.Rebuilt.Dropped) > 0) != (name == "kv_ortbasic") {
			t.Errorf("%s: %v, %+v", name, err, r)
		}
	}
}
