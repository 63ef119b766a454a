package rewrite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/contrib"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/prove"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// contribBackend writes sites as ONNX Runtime's own GroupQueryAttention. They are lowered
// to the op first, which is replaced at the end.
type contribBackend struct {
	opsBackend
	runtime contrib.Version // oldest ONNX Runtime that is to run the model
}

func (b *contribBackend) text() string {
	if b.runtime != 0 {
		return fmt.Sprintf("target %s:onnxruntime=%v", Contrib, b.runtime)
	}
	return "target " + string(Contrib)
}

func (b *contribBackend) takes(o Options) (err error) {
	if _, setting, given := strings.Cut(string(o.Target), ":"); given {
		version, ok := strings.CutPrefix(setting, "onnxruntime=")
		if !ok {
			return fmt.Errorf("the target %s: %s:onnxruntime=1.22 was expected, with the oldest version that is to run the model", o.Target, Contrib)
		}
		if b.runtime, err = contrib.ParseVersion(version); err != nil {
			return fmt.Errorf("the target %s: %w", Contrib, err)
		}
	}
	return nil
}

// lower writes the op, where GroupQueryAttention computes it.
func (b *contribBackend) lower(e *edited) (lower.Change, error) {
	if e.want.Cross && e.written == nil { // it takes no keys of another text, and no method reaches these
		e.form = OwnNodes
		return e.change(nil, nil), nil
	}
	c, err := b.opsBackend.lower(e)
	if err != nil {
		return c, err
	}
	op, _ := opOf(c)
	if why := contrib.Refused(*op, b.runtime); why != nil {
		return c, &EditError{Layer: e.layer, Err: fmt.Errorf("GroupQueryAttention does not compute this: %w; --target ops does with the op library, --target onnx without", why)}
	}
	if e.rows() == 0 {
		return c, &EditError{Layer: e.layer, Err: errors.New("GroupQueryAttention reads cosines and sines from tables, and nothing says how many tokens these are for; give the context to reach (--context)")}
	}
	e.form = GroupQuery
	return c, nil
}

// rows is how many tokens tables of the site must serve, 0 where nothing says it.
func (e *edited) rows() int64 {
	switch reach := rope.Reachable(e.specs, e.known); {
	case len(e.want.Encoding.Frequencies) == 0:
		return 1 // it has no tables
	case e.known.Length > 0:
		return e.known.Length
	case reach > 0:
		return reach
	case e.known.Original > 0:
		return e.known.Original
	case e.Measured.LengthTracked != nil:
		return e.Measured.LengthTracked.Limit
	}
	return 0
}

// finish proves GroupQueryAttention for each op, and puts it in its place.
func (b *contribBackend) finish(ctx context.Context, r *request, p *plan, report *Report) error {
	nodes := map[*onnx.Node]contrib.Node{}
	seen := map[string]bool{}
	needs, rows := contrib.Version(0), int64(0)
	for i, e := range p.sites {
		op, n := opOf(p.changes[i])
		if op == nil {
			continue
		}
		of := contrib.Node{Element: e.Scope.View.Element(e.Site.Query.Boundary), HeadSize: int64(e.want.HeadSize), Rows: e.rows()}
		nodes[n] = of
		needs, rows = max(needs, contrib.Needs(*op)), max(rows, of.Rows)
		key := alike("", *op, e.want.HeadSize)
		if seen[key] {
			continue
		}
		seen[key] = true
		if err := r.proveContrib(ctx, n, *op, e.want.HeadSize, b.runtime); err != nil {
			return fmt.Errorf("layer %d: GroupQueryAttention: %w", e.layer, err)
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	report.warn(fmt.Sprintf("GroupQueryAttention counts positions from the first token of a row: rows have no padding on the left, at most %d tokens, and ONNX Runtime is %v or newer", rows, needs))
	return contrib.Replace(r.model, nodes, b.runtime)
}

// proveContrib proves GroupQueryAttention for one op.
func (r *request) proveContrib(ctx context.Context, n *onnx.Node, op customop.RotaryAttention, headSize int, runtime contrib.Version) error {
	eng, err := r.opts.engine()
	if err != nil {
		return err
	}
	defer eng.Close()
	_, err = prove.Contrib(ctx, eng, n, op, r.model.Opset(""), headSize, func(m *onnx.Model, rows int64) error {
		return contrib.Replace(m, map[*onnx.Node]contrib.Node{m.Graph.Nodes[0]: {Element: onnx.Float, HeadSize: int64(headSize), Rows: rows}}, runtime)
	})
	return err
}
