package audit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/audit"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

func of(t *testing.T, path string) (*audit.Survey, error) {
	t.Helper()
	testruntime.Require(t)
	m, err := onnx.Open("../testdata/" + path + "/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	return audit.Look(context.Background(), m, rewrite.Options{})
}

// Tables of cosines end where GenAI's builder lets them; of two that an If chooses the
// longer counts. Where angles are computed there are none.
func TestPositions(t *testing.T) {
	for path, want := range map[string]int64{
		"models/llama__genai-fp32":           64,
		"coverage/phi3_longrope__genai-fp32": 64,
		"models/llama__optimum":              0,
		"models/gpt_neox__dynamo18-fusions":  0,
	} {
		s, err := of(t, path)
		if err != nil {
			t.Fatal(err)
		}
		if s.Positions != want {
			t.Errorf("%s: %d positions, want %d", path, s.Positions, want)
		}
	}
}

// Each branch of an If has layers of its own.
func TestScopes(t *testing.T) {
	s, err := of(t, "models/gpt_neox__dynamo18-merged")
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, at := range s.Layers {
		got += fmt.Sprint(at.Place, " ")
	}
	if got != "0 1 0 1 " || s.Layers[0].Scope == s.Layers[2].Scope {
		t.Errorf("places %s in %q and %q", got, s.Layers[0].Scope, s.Layers[2].Scope)
	}
}

func TestNoRotation(t *testing.T) {
	if _, err := of(t, "coverage/gpt2__ts17-cache"); !errors.Is(err, rewrite.ErrNoAttention) {
		t.Errorf("a model without rotation: %v", err)
	}
}

func ExampleLook() {
	m, err := onnx.Open("../testdata/models/gemma3_text__dynamo18/model.onnx")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	s, err := audit.Look(context.Background(), m, rewrite.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, at := range s.Layers {
		fmt.Println(at.Place, at.Describe())
	}
	// Output:
	// 0 4 heads, 2 for keys, rotary 16 half, theta 1000, score scale 0.25, causal + window 8 + padding
	// 1 4 heads, 2 for keys, rotary 16 half, theta 10000, score scale 0.25, causal + padding
}
