package rewrite

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/version"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// record returns what is to be said of the rewrite in the model's metadata. before are
// the inputs and outputs as they were.
func (r *request) record(report *Report, p *plan, before map[string]*onnx.ValueInfo) *provenance.Record {
	out := &provenance.Record{
		Tool:          version.This().String(),
		Target:        string(cmp.Or(r.opts.Target, Ops)),
		Graph:         hex.EncodeToString(r.digest[:]),
		Configuration: provenance.Configuration{Trained: r.opts.Context.Original, Theta: r.opts.Context.Theta, Context: r.opts.Context.Length},
		Edits:         r.recordedEdits(p, report),
	}
	out.AddedInputs, out.Buffers = changedShapes(r.model, before)
	merged := map[siteKey]int{}
	for i, e := range p.sites {
		s := r.recordedSite(e, report.Sites[e.layer])
		s.Ops, s.PositionIDs = nil, nil
		if op, node := opOf(p.changes[i]); op != nil && e.form == "" {
			out.OpSpec = max(out.OpSpec, node.Int("spec_version", 0))
			s.Ops, s.PositionIDs = []string{node.Name}, []string{e.binding.Positions()}
			if s.PositionIDs[0] == op.PositionIDs {
				s.PositionIDs = nil
			}
		}
		if s.Proof != nil {
			out.MaxError = max(out.MaxError, s.Proof.MaxError)
		}
		out.Sites = merge(out.Sites, s, merged)
	}
	for _, s := range report.Sites {
		if s.Status == Kept {
			out.Kept = append(out.Kept, provenance.Kept{Layer: s.Layer, Node: s.Node, Scope: s.Scope, Op: s.Op, Reason: s.Reason})
		}
	}
	if r.earlier != nil {
		r.earlier.keep(out, r.carried)
	}
	return out
}

// keep gives a new record what the earlier one knows of the original model, and the context of
// methods that are carried on.
func (e *earlier) keep(out *provenance.Record, carried bool) {
	context := out.Configuration.Context
	if carried {
		context = cmp.Or(context, e.record.Configuration.Context)
	}
	out.Graph, out.Configuration = e.record.Graph, e.record.Configuration
	out.Configuration.Context = context
	if e.holdsOps() {
		out.Kept = e.record.Kept
	}
}

// opOf returns the op that a change puts in, nil where the model's own nodes stay.
func opOf(c lower.Change) (*customop.RotaryAttention, *onnx.Node) {
	for _, n := range c.Nodes {
		if site.IsOp(n) {
			if op, err := definition.Read(n); err == nil { // it was written a moment ago
				return &op, n
			}
		}
	}
	return nil, nil
}

// recordedSite returns what was measured of one site, before any edit.
func (r *request) recordedSite(e edited, s Site) provenance.Site {
	if e.written != nil {
		w := *e.written.record
		w.Layers, w.Nodes, w.Form, w.Computes = []int{e.layer}, []string{s.Node}, string(e.form), e.computes()
		return w
	}
	out := provenance.Site{
		Layers: []int{e.layer}, Nodes: []string{s.Node}, Scope: s.Scope,
		Op: s.Op, Original: e.Measured.Attention, Cache: s.Cache,
		Normed:        [2]bool{e.Site.Query.Normed(), e.Site.Key.Normed()},
		AfterRotation: s.AfterRotation, Unknown: s.Unknown, RotationOnly: s.RotationOnly, Reason: s.Reason,
		Latent: e.Measured.Latent != nil,
		Form:   string(e.form), Computes: e.computes(),
		Proof: s.Proof,
	}
	if r.earlier != nil {
		if original := r.earlier.original(s); original != nil {
			out.Original = *original
		}
	}
	return out
}

// computes is what a site computes, for the record, where its nodes will not tell it.
func (e *edited) computes() *rope.Attention {
	if e.form.told() {
		return nil
	}
	a := e.want
	return &a
}

// siteKey tells sites of different values apart.
type siteKey struct {
	value string // all that does not belong to one layer, as JSON
	moved bool   // a method gave the op other positions
}

// merge adds a site to those of the same value. merged says where in the list they are.
func merge(list []provenance.Site, s provenance.Site, merged map[siteKey]int) []provenance.Site {
	value := s
	value.Layers, value.Nodes, value.Ops, value.PositionIDs = nil, nil, nil, nil
	text, _ := json.Marshal(value) // provenance.Write does so once more, and says what fails
	key := siteKey{string(text), s.PositionIDs != nil}
	i, ok := merged[key]
	if !ok {
		merged[key] = len(list)
		return append(list, s)
	}
	to := &list[i]
	to.Layers, to.Nodes, to.Ops = append(to.Layers, s.Layers...), append(to.Nodes, s.Nodes...), append(to.Ops, s.Ops...)
	to.PositionIDs = append(to.PositionIDs, s.PositionIDs...)
	return list
}

// kinds are what an edit can change, in the order in which records list edits: the
// axes of methods first.
var kinds = []string{rope.ScalingAxis.String(), rope.PositionsAxis.String(), rope.MaskAxis.String(), "angles", "cache", "precision", "documents", "kv", "logits", "opset"}

// recordedEdits returns the methods as the sites had them, each once with its layers,
// and what the features add.
func (r *request) recordedEdits(p *plan, report *Report) []provenance.Edit {
	var list []provenance.Edit
	add := func(d provenance.Edit, layer int) {
		for i := range list {
			if to := &list[i]; sameEdit(*to, d) {
				to.Layers = append(to.Layers, layer)
				return
			}
		}
		d.Layers = []int{layer}
		list = append(list, d)
	}
	if r.carried {
		for _, d := range r.earlier.record.Edits {
			if slices.Contains(kinds[:3], d.What) { // the rest is seen of this rewrite itself
				list = append(list, d)
			}
		}
	}
	for i, e := range p.sites {
		for _, d := range e.applied {
			add(d, e.layer)
		}
		if e.want.Encoding.ExactAngles {
			add(provenance.Edit{What: "angles", Given: "exact"}, e.layer)
		}
		if e.want.Cache == rope.Raw && e.Measured.Layouts.Cached {
			add(provenance.Edit{What: "cache", Given: "raw"}, e.layer)
		}
		if e.isFast(p.changes[i]) {
			add(provenance.Edit{What: "precision", Given: fastPrecision}, e.layer)
		}
		for _, d := range p.features {
			if !e.want.Cross {
				add(d, e.layer)
			}
		}
		if n := r.opts.OperatorSet; n > 0 {
			add(provenance.Edit{What: "opset", Given: strconv.FormatInt(n, 10)}, e.layer)
		}
	}
	slices.SortStableFunc(list, func(a, b provenance.Edit) int {
		return cmp.Compare(slices.Index(kinds, a.What), slices.Index(kinds, b.What))
	})
	for i, d := range list {
		for _, text := range report.Edits {
			if rest, ok := strings.CutPrefix(text, d.String()+onUnwindowed); ok {
				list[i].Note = rest
			}
		}
	}
	return list
}

// sameEdit reports whether two edits differ in their layers alone.
func sameEdit(a, b provenance.Edit) bool {
	a.Layers, b.Layers = nil, nil
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && slices.Equal(x, y)
}

// shapesOf returns the inputs and outputs of the model's graph.
func shapesOf(m *onnx.Model) map[string]*onnx.ValueInfo {
	shapes := map[string]*onnx.ValueInfo{}
	for _, v := range slices.Concat(m.Graph.Inputs, m.Graph.Outputs) {
		shapes[v.Name] = v
	}
	return shapes
}

// changedShapes returns which inputs are new, and which parts of the cache have another
// size now.
func changedShapes(m *onnx.Model, before map[string]*onnx.ValueInfo) (added []string, buffers []provenance.Buffer) {
	for _, v := range m.Graph.Inputs {
		if before[v.Name] == nil {
			added = append(added, v.Name)
		}
	}
	for _, v := range slices.Concat(m.Graph.Inputs, m.Graph.Outputs) {
		old := before[v.Name]
		if old == nil || len(old.Shape) != 4 || old.Shape[2] == v.Shape[2] {
			continue
		}
		size := old.Shape[2]
		i := slices.IndexFunc(buffers, func(b provenance.Buffer) bool { return b.Dim() == size })
		if i < 0 {
			i = len(buffers)
			buffers = append(buffers, provenance.Buffer{Param: size.Param, Value: size.Value})
		}
		buffers[i].Values = append(buffers[i].Values, v.Name)
	}
	return added, buffers
}
