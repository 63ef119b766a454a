package backend

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/contrib"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fallback"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/plan"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/prove"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// contribOp writes sites as ONNX Runtime's own GroupQueryAttention. They are lowered
// to the op first, which is replaced at the end.
type contribOp struct {
	runtime contrib.Version // oldest ONNX Runtime that is to run the model
}

func (b *contribOp) Accepts(setting string, o Options) (err error) {
	if setting != "" {
		version, ok := strings.CutPrefix(setting, "onnxruntime=")
		if !ok {
			return fmt.Errorf("the target contrib:%s: expected contrib:onnxruntime=1.22, with the oldest version that is to run the model", setting)
		}
		if b.runtime, err = contrib.ParseVersion(version); err != nil {
			return fmt.Errorf("the target contrib: %w", err)
		}
	}
	if o.Precision != "" {
		return fmt.Errorf("--precision %s needs the op, but --target contrib writes GroupQueryAttention, which rounds as ONNX Runtime does; drop --precision or --target", o.Precision)
	}
	if o.CacheType == "int8" && !o.Scaled {
		return errors.New("--kv with type=int8 and --target contrib needs fixed scales, because GroupQueryAttention makes none; measure them with rope-rewrite scales and give them with --kv-scales FILE")
	}
	return nil
}

// Form lowers the sites to the op, where GroupQueryAttention computes it.
func (b *contribOp) Form(ctx context.Context, j Job) error {
	if err := (*ops)(nil).Form(ctx, j); err != nil {
		return err
	}
	for _, s := range j.Plan.Sites {
		if s.Want.Cross && s.Written == nil { // it takes no keys of another text, and no method reaches these
			s.Form, s.Change = lower.OwnNodes, s.Becomes(nil, nil)
			continue
		}
		op, _ := s.Change.Op()
		why := contrib.Refused(*op, j.node(s), b.runtime)
		if s.Binding.Slots != nil {
			why = errors.New("a fixed-capacity buffer with its own lengths is written only for the op")
		}
		if c := s.Measured.Computed; why == nil && c != nil && (c.Shifted || c.Unlike != "") {
			why = fmt.Errorf("it uses the index of each token as its position, but the graph computes other positions (%q)", short.Name(c.Value))
		}
		if why != nil {
			return &plan.LayerError{Layer: s.Layer, Err: fmt.Errorf("GroupQueryAttention cannot compute this: %w; use --target ops with the op library, or --target onnx without it", why)}
		}
		if j.node(s).Rows == 0 {
			return &plan.LayerError{Layer: s.Layer, Err: errors.New("GroupQueryAttention reads cosines and sines from tables, whose length is not known; give --context")}
		}
		s.Form = lower.GroupQuery
	}
	return nil
}

// node is what GroupQueryAttention must know of a site.
func (j Job) node(s *plan.Site) contrib.Node {
	return contrib.Node{Element: s.Scope.View.Element(s.Site.Query.Boundary), HeadSize: int64(s.Want.HeadSize), Rows: max(tableRows(s), j.Capacity), Scales: s.Scales, Drawn: s.Want.Drawn.Range > 0}
}

// tableRows is how many tokens tables of the site must serve, 0 where nothing says it.
func tableRows(s *plan.Site) int64 {
	switch reach := rope.Reachable(s.Specs, s.Known); {
	case len(s.Want.Encoding.Frequencies) == 0:
		return 1 // it has no tables
	case s.Known.Length > 0:
		return s.Known.Length
	case reach > 0:
		return reach
	case s.Known.Original > 0:
		return s.Known.Original
	case s.Measured.LengthTracked != nil:
		return s.Measured.LengthTracked.Limit
	}
	return 0
}

// Write proves GroupQueryAttention for each op, and puts it in its place.
func (b *contribOp) Write(ctx context.Context, j Job) (w Written, err error) {
	if err = j.apply(); err != nil {
		return w, err
	}
	if err := j.features(); err != nil {
		return w, err
	}
	nodes := map[*onnx.Node]contrib.Node{}
	needs, rows := contrib.Version(0), int64(0)
	for _, s := range j.Plan.Sites {
		if op, n := s.Change.Op(); op != nil {
			of := j.node(s)
			nodes[n] = of
			needs, rows = max(needs, contrib.Needs(*op, of)), max(rows, of.Rows)
		}
	}
	for s, op := range fallback.DistinctOps(j.Plan.Sites) {
		if err := b.prove(ctx, j, op); err != nil {
			return w, fmt.Errorf("layer %d: GroupQueryAttention: %w", s.Layer, err)
		}
	}
	if len(nodes) == 0 {
		return w, nil
	}
	w.Warnings = append(w.Warnings, fmt.Sprintf("GroupQueryAttention counts positions from the first token of a row: rows must have no padding on the left and at most %d tokens, and ONNX Runtime must be %v or newer", rows, needs))
	return w, contrib.Replace(j.Model, nodes, b.runtime)
}

// prove proves GroupQueryAttention for one op.
func (b *contribOp) prove(ctx context.Context, j Job, op fallback.Op) error {
	eng, err := j.Engine.Get()
	if err != nil {
		return err
	}
	_, err = prove.Contrib(ctx, eng, op.Node, op.RotaryAttention, op.Scales, j.Model.Opset(""), op.HeadSize, func(m *onnx.Model, rows int64) error {
		return contrib.Replace(m, map[*onnx.Node]contrib.Node{m.Graph.Nodes[0]: {Element: onnx.Float, HeadSize: int64(op.HeadSize), Rows: rows, Scales: op.Scales}}, b.runtime)
	})
	return err
}
