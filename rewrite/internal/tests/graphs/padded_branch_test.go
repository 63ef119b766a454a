package graphs_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// showPadding lets the masks of a graph hide padding no more: each And of something with what the padding mask gives
// is of the former alone.
func showPadding(t *testing.T, g *onnx.Graph) {
	t.Helper()
	padding, changed := map[string]bool{"attention_mask": true}, 0
	for _, n := range g.Nodes {
		made := slices.IndexFunc(n.Inputs, func(v string) bool { return padding[v] })
		if made < 0 {
			continue
		}
		if n.OpType == "And" && !padding[n.Inputs[1-made]] && !slices.ContainsFunc(g.Nodes, func(other *onnx.Node) bool {
			return other.OpType == "Constant" && other.Outputs[0] == n.Inputs[1-made]
		}) {
			n.Inputs[made] = n.Inputs[1-made]
			changed++
			continue
		}
		if n.OpType != "Shape" {
			for _, o := range n.Outputs {
				padding[o] = true
			}
		}
	}
	if changed == 0 {
		t.Fatal("no mask was changed")
	}
}

// The branch of the first call gives padded queries that see no key something else than the op, and the cache has what
// comes of it. Where the branch of later calls shows padding, other tokens depend on it.
func TestBranchThatShowsPadding(t *testing.T) {
	testruntime.Require(t)
	m := kit.OpenModel(t, "../../../../testdata/models/gpt_neox__dynamo18-merged/model.onnx")
	branches := m.Graph.Nodes[slices.IndexFunc(m.Graph.Nodes, func(n *onnx.Node) bool { return n.OpType == "If" })]
	showPadding(t, branches.Graph("then_branch"))
	report, err := kit.Rewrite(context.Background(), m, rewrite.Options{AllowUnchanged: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range report.Sites {
		first := strings.HasPrefix(s.Scope, "else_branch")
		if refused := s.Kind == rewrite.PaddingRead && strings.Contains(s.Reason, "in then_branch of branches may see them in a cache"); refused != first {
			t.Errorf("layer %d in %s is %s %s: %s", s.Layer, s.Scope, s.Status, s.Kind, s.Reason)
		}
	}
}
