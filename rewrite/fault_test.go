package rewrite_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// A fault of the rewriter is an error of one line that names the place, and the model is as it was.
func TestFault(t *testing.T) {
	testruntime.Require(t)
	m, err := onnx.Open("../testdata/models/llama__dynamo18/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	before, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var none []string
	for want, fail := range map[string]func(){
		"(runtime error: index out of range [3] with length 0 in rewrite_test.TestFault": func() { none[3] = "" },
		`("two\nlines" in rewrite_test.TestFault`:                                        func() { panic("two\nlines") },
	} {
		ctx := engine.WithOpener(t.Context(), func(engine.Config) (engine.Engine, error) { fail(); return nil, nil })
		_, rewritten := rewrite.Rewrite(ctx, m, rewrite.Options{})
		_, inspected := rewrite.Inspect(ctx, m, rewrite.Options{})
		for _, err := range []error{rewritten, inspected} {
			fault := (*rewrite.FaultError)(nil)
			if !errors.As(err, &fault) || !bytes.Contains(fault.Stack, []byte("fault_test.go")) {
				t.Fatalf("%v", err)
			}
			if text := err.Error(); !strings.Contains(text, want) || strings.Contains(text, "\n") {
				t.Errorf("%q, want %s", text, want)
			}
		}
	}
	if after, err := m.Marshal(); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the model changed (%v)", err)
	}
}
