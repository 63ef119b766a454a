package reach_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// Values that are read often, by values that are read often: there are so many ways through the graph that a walk over
// all of them would not end. Sixty nodes that read one value twice stand in front of every node that moves, compares or
// turns something.
func TestSharedValuesEnd(t *testing.T) {
	testruntime.Require(t)
	for _, by := range []string{"Sub", "Max"} {
		for _, op := range []string{"Cos Sin", "Range", "Gather", "LessOrEqual", "Where", "Expand", "Reshape", "Softmax"} {
			t.Run(by+"/"+op, func(t *testing.T) {
				t.Parallel()
				m := kit.OpenModel(t, kit.Model("llama__dynamo18"))
				if shareInputs(m.Graph, op, by) == 0 {
					t.Fatalf("the model has no such %s", op)
				}
				path := filepath.Join(t.TempDir(), "model.onnx")
				if err := m.Save(path, onnx.SaveOptions{}); err != nil {
					t.Fatal(err)
				}
				ended := make(chan error)
				go func() {
					_, err := kit.Rewrite(t.Context(), kit.OpenModel(t, path), rewrite.Options{})
					ended <- err
				}()
				select {
				case <-ended: // rewritten, or left alone: both are right
				case <-time.After(5 * time.Minute):
					t.Fatal("the rewrite does not end")
				}
			})
		}
	}
}

// shareInputs puts such nodes in front of what nodes of a kind, or of two, read.
func shareInputs(g *onnx.Graph, op, by string) (count int) {
	for _, n := range slices.Clone(g.Nodes) {
		if !slices.Contains(strings.Fields(op), n.OpType) {
			continue
		}
		for i, x := range n.Inputs {
			if slices.Contains([]string{"Where", "Gather"}, op) && i == 0 || slices.Contains([]string{"Reshape", "Expand"}, op) && i != 1 || g.Initializer(x) != nil {
				continue
			}
			for range 60 {
				made := fmt.Sprint("shared/", count)
				g.InsertNode(n, onnx.NewNode(by, []string{x, x}, []string{made}))
				x, count = made, count+1
			}
			n.Inputs[i] = x
		}
	}
	return count
}
