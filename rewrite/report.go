package rewrite

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/analysis"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/earlier"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Status says whether an attention layer was rewritten.
type Status string

const (
	Rewritten Status = "rewritten" // verified equal, and replaced
	Rotation  Status = "rotation"  // its rotation was verified equal, and replaced by the op Rotary; the attention keeps its nodes, with the reason
	Unchanged Status = "unchanged" // left unchanged, with the reason
)

// Kind says by which rule an attention layer is unchanged.
type Kind string

const (
	NotDelimited Kind = Kind(analysis.NotDelimited) // its beginning or end was not found
	SharesCache  Kind = Kind(analysis.SharesCache)  // another layer reads or writes the same cache
	NotMeasured  Kind = Kind(analysis.NotMeasured)  // what it computes could not be measured
	NotVerified  Kind = Kind(analysis.NotProven)    // the op computes something else
	NotRotary    Kind = Kind(analysis.NotRotary)    // it rotates neither query nor key by position
	NotAskedFor  Kind = Kind(analysis.NotAsked)     // Options.Layers leaves it out
	CrossAlone   Kind = Kind(analysis.CrossAlone)   // no rotary attention layer is rewritten with it
	PaddingRead  Kind = Kind(analysis.PaddingRead)  // other tokens depend on padded queries
	ReadOutside  Kind = Kind(analysis.Outside)      // a value that a method changes is read elsewhere
	LeftBefore   Kind = Kind(analysis.Earlier)      // an earlier rewrite left it unchanged
)

// Form says how an attention layer is written.
type Form string

const (
	OwnNodes Form = Form(lower.OwnNodes) // the model's own, changed
	Inlined  Form = Form(lower.Inlined)  // the fallback's nodes, in the graph

	GroupQuery Form = Form(lower.GroupQuery) // ONNX Runtime's op GroupQueryAttention
	Rotary     Form = Form(lower.Rotary)     // the op Rotary before the model's own attention
)

// ReportVersion is the version of a report's JSON (docs/schemas/rewrite.schema.json). It grows when a field is
// renamed or taken away.
const ReportVersion = 1

// Report says what was found and what was done.
type Report struct {
	Version  int      `json:"report_version"` // ReportVersion
	Model    string   `json:"model"`
	Sites    []Site   `json:"layers"`
	Edits    []string `json:"edits"`
	Warnings []string `json:"warnings"`
	Output   string   `json:"output"`  // file written, "" if none
	Seconds  float64  `json:"seconds"` // of the work; the command adds opening and writing

	// Weights are the weight files that were put beside an output in another folder.
	Weights []onnx.PlacedFile `json:"weights,omitempty"`

	// Again says that the layers were rewritten, and verified, before: they hold the op.
	Again bool `json:"again,omitempty"`

	// OperatorSet says from which version of the standard operators to which the model was
	// converted first; nil if it was not.
	OperatorSet *OperatorSet `json:"opset,omitempty"`

	// Fallback says whether the model runs without the op library; nil if no layer was
	// replaced by the op, or no fallback was asked for.
	Fallback *Fallback `json:"fallback,omitempty"`

	// Record is the record in the model's metadata: what was done, with every parameter
	// resolved; nil if nothing was done.
	Record *provenance.Record `json:"record,omitempty"`
}

func newReport(m *onnx.Model) *Report {
	return &Report{Version: ReportVersion, Model: m.Path, Sites: []Site{}, Edits: []string{}, Warnings: []string{}}
}

// Site is one attention layer of the model. Fields that could not be measured are zero.
type Site struct {
	Node      string  `json:"node"`
	Scope     string  `json:"scope,omitempty"` // the graph inside a node that it is in; "" is the model's own
	Layer     int     `json:"layer"`           // its place among the attention layers, in the graph's order
	Op        string  `json:"op"`              // op that the exporter wrote its core as
	Heads     int     `json:"heads"`
	KVHeads   int     `json:"kv_heads"`
	HeadSize  int     `json:"head_size"`
	RotaryDim int     `json:"rotary_dim"`
	Layout    string  `json:"layout"`
	Theta     float64 `json:"theta"`             // base of the frequencies, before any scaling in the graph; 0 if they follow none
	Scaling   string  `json:"scaling,omitempty"` // scaling of the frequencies in the exported graph; empty if there is none or it is unknown
	Mask      string  `json:"mask"`

	// Distance names the bias that the heads add to their scores by the distance between query and key, as
	// ALiBi's slopes or T5's buckets; empty if there is none.
	Distance string `json:"distance,omitempty"`

	// AfterRotation says which of query and key are normed, scaled by token or head (a
	// temperature), or weighted by channel after their rotation; empty for most.
	AfterRotation string `json:"after_rotation,omitempty"`

	// Positions is about positions that the graph computes itself: "by index" (each is the index of its
	// token plus one number for its row), or why they are not and can only be scaled; empty for most.
	Positions string `json:"positions,omitempty"`

	// Unknown is the largest relative error of the frequencies, if 16-bit arithmetic did not
	// show them to float32 accuracy and no closed form explained them; 0 otherwise.
	Unknown float64 `json:"frequencies_known_to,omitempty"`

	// RotationOnly says that only the rotation was changed, because the rest could not be measured, for Reason:
	// its constants (PlainONNX), or the op Rotary took its place (Status Rotation).
	RotationOnly bool `json:"rotation_only,omitempty"`

	// ScoresOnly says that the rotation could not be measured, for Reason: the model's own
	// nodes rotate query and key as before, and the op does the rest. Masks and caches can be
	// changed, scalings and position maps cannot.
	ScoresOnly bool `json:"scores_only,omitempty"`

	// CrossAttention says that the keys are those of another text, an encoder's: nothing in the
	// layer is rotated by position, and methods leave it unchanged.
	CrossAttention bool `json:"cross_attention,omitempty"`

	// Form says how the layer is written if not as the fused op, and FormReason why it is not
	// the target's first choice.
	Form       Form   `json:"form,omitempty"`
	FormReason string `json:"form_reason,omitempty"`

	Cache  string `json:"cache"` // "none", "growing", "length-tracked" (each row has a length) or "fixed"
	Status Status `json:"status"`
	Kind   Kind   `json:"kind,omitempty"` // by which rule it, or its attention, is unchanged; empty if it is rewritten
	Reason string `json:"reason"`         // why it is unchanged, or why only its rotation or scores are known
	Proof  *Proof `json:"verification"`

	// Attention is what was measured, before any edit; nil for a layer that could not be
	// measured.
	Attention *rope.Attention `json:"-"`

	// TablePositions is how many positions the model's own tables of cosines and sines reach; 0 where angles are
	// computed, or that was not measured.
	TablePositions int64 `json:"-"`
}

// OperatorSet says that the model was converted to a newer version of the standard operators.
type OperatorSet struct {
	From      int64 `json:"from"`
	To        int64 `json:"to"`
	Converted int   `json:"converted"` // nodes that changed
}

// Fallback says whether the model also has its op in standard operators, for runtimes
// without the op library (package rewrite/definition).
type Fallback struct {
	Ops      []string `json:"ops"`                 // names of the op that have a function; none if Reason says why
	Bytes    int      `json:"bytes"`               // that the functions take in the file
	MaxError float64  `json:"max_error,omitempty"` // of the functions against float64, relative to the largest number of a result
	Reason   string   `json:"reason,omitempty"`    // why there is none
}

// Proof is the verification of a layer: how the op compared with the original on random inputs.
type Proof = provenance.Proof

// Rewritten counts the layers that were rewritten.
func (r *Report) Rewritten() int { return r.count(func(s Site) bool { return s.Status == Rewritten }) }

// Rotations counts the layers of which only the rotation was replaced (Status Rotation).
func (r *Report) Rotations() int { return r.count(func(s Site) bool { return s.Status == Rotation }) }

// Replaced counts the layers that were rewritten, as a whole or their rotation alone.
func (r *Report) Replaced() int { return r.Rewritten() + r.Rotations() }

// Unproven counts the layers that could not be rewritten as asked for.
func (r *Report) Unproven() int { return r.count(Site.unproven) }

func (s Site) unproven() bool { return s.Status != Rewritten && s.Kind != NotAskedFor }

// partial is the error for layers that were asked for and could not be rewritten;
// nil if there are none.
func (r *Report) partial() error {
	i := slices.IndexFunc(r.Sites, Site.unproven)
	if i < 0 {
		return nil
	}
	return fmt.Errorf("%w: %d of %d are unchanged, first layer %d (%s); Options.AllowUnchanged allows it",
		ErrPartial, r.Unproven(), len(r.Sites), r.Sites[i].Layer, r.Sites[i].Reason)
}

func (r *Report) count(is func(Site) bool) int {
	n := 0
	for _, s := range r.Sites {
		if is(s) {
			n++
		}
	}
	return n
}

func (r *Report) warn(warnings ...string) {
	for _, w := range warnings {
		if !slices.Contains(r.Warnings, w) {
			r.Warnings = append(r.Warnings, w)
		}
	}
}

// value fills in the attention of a site.
func (s *Site) value(a rope.Attention) {
	s.Attention = &a
	s.Heads, s.KVHeads, s.HeadSize = a.Heads, a.KVHeads, a.HeadSize
	s.RotaryDim, s.CrossAttention = a.Encoding.RotaryDim(), a.Cross
	s.Layout, s.Theta, s.Scaling = "", 0, ""
	s.Distance = measure.NameDistance(a.Distance)
	if s.RotaryDim == 0 {
		return
	}
	s.Layout = a.Encoding.Layout.String()
	if base, ok := a.Encoding.Base(); ok {
		s.Theta = base
	}
}

// describe fills in what was measured of a site.
func (s *Site) describe(a *measure.Attention) {
	m := a.Measured
	s.value(m.Attention)
	s.Unknown = m.Unknown
	s.RotationOnly, s.ScoresOnly = m.RotationOnly, m.Turned
	byInput := m.Position != nil && m.Attention.Cache != rope.Raw // and not by places in a row, of which there are only so many
	if byInput && m.Angles == rope.Float32 && m.PositionLimit < ir.TopPosition {
		s.TablePositions = m.PositionLimit + 1
	}
	if m.RotationOnly {
		return
	}
	s.AfterRotation = strings.Join(slices.DeleteFunc([]string{a.Site.AfterRotation(), m.Attention.DescribeFactors()}, func(text string) bool { return text == "" }), ", ")
	s.Mask, s.Cache = m.Attention.Mask.String(), lower.CacheOf(m)
	if c := m.Computed; c != nil {
		s.Positions = cmp.Or(c.Unlike, provenance.ByIndex)
	}
}

// recognise notes by which method the frequencies of the site are already scaled.
func (s *Site) recognise(known rope.Context) {
	if s.Attention == nil || s.RotaryDim == 0 || s.Theta != 0 {
		return
	}
	if spec, base, ok := rope.Recognise(*s.Attention, known); ok {
		s.Theta, s.Scaling = base, spec.String()
	}
}

// siteOf returns the report of a site as it was before any edit.
func siteOf(of analysis.Site) Site {
	var s Site
	switch {
	case of.Written != nil:
		s = SiteOf(*of.Written.Record)
		s.ScoresOnly = of.Written.Turned()
	case of.Attention != nil:
		s.describe(of.Attention)
		s.ScoresOnly = s.ScoresOnly && of.Unchanged != analysis.PaddingRead
	}
	s.Node, s.Scope, s.Layer, s.Op, s.Status, s.Proof, s.Reason = of.Node, of.Scope, of.Layer, of.Op, Rewritten, of.Proof, of.Reason
	switch {
	case of.Unchanged != "":
		s.Status, s.Kind = Unchanged, Kind(of.Unchanged)
	case of.Whole != "":
		s.Status, s.Kind = Rotation, Kind(of.Whole)
	}
	return s
}

// report makes the report of what was done.
func (r *request) report(v values) *Report {
	out := newReport(r.model)
	if v.analysis != nil {
		out.Again = v.analysis.Again
		if out.Again && !r.inspection && r.opts.Evaluation.ProveWith != (ProveWith{}) {
			out.warn("the layers were verified in an earlier rewrite, and not again with the runtime that was named for it; rewrite the original file for that")
		}
		for _, s := range v.analysis.Sites {
			out.Sites = append(out.Sites, siteOf(s))
		}
		out.warn(v.analysis.Warnings...)
	}
	if v.plan != nil {
		for i := range out.Sites {
			out.Sites[i].recognise(r.methods.Context)
		}
		for _, s := range v.plan.Sites {
			out.Sites[s.Layer].Form, out.Sites[s.Layer].FormReason = Form(s.Form), s.FormReason
		}
		for _, e := range v.plan.Edits {
			out.Edits = append(out.Edits, e.String())
		}
		out.warn(v.plan.Warnings...)
	}
	if v.result != nil {
		out.warn(v.result.Warnings...)
		out.Fallback, out.Record = (*Fallback)(v.result.Fallback), v.result.record
	}
	out.warn(r.warnings...)
	if v.source != nil {
		if raised := v.source.raised; raised != nil {
			out.OperatorSet = &OperatorSet{From: raised.From, To: raised.To, Converted: raised.Converted}
		}
		out.warn(v.source.warnings...)
	}
	return out
}

// SiteOf returns a site of a record, before any edit, in the form of a report. It is for
// all layers of the record's site.
func SiteOf(r provenance.Site) Site {
	s := Site{Scope: r.Scope, Op: r.Op, Status: Rewritten, Proof: r.Proof, AfterRotation: r.AfterRotation, Positions: r.Positions, Unknown: r.Unknown,
		RotationOnly: r.RotationOnly, Reason: r.Reason, Form: Form(r.Form), Cache: reportedCache(r.Cache), Mask: r.Original.Mask.String()}
	s.value(r.Original)
	if s.Form == Rotary {
		s.Status, s.Kind, s.Mask = Rotation, LeftBefore, ""
	}
	return s
}

// unchangedBefore is the report of a layer that an earlier rewrite left unchanged.
func unchangedBefore(e *earlier.Rewrite, layer int) Site {
	k := e.Unchanged(layer)
	return Site{Node: k.Node, Scope: k.Scope, Layer: layer, Op: k.Op, Status: Unchanged, Kind: LeftBefore, Reason: k.Reason}
}

// countedCache is what records call a length-tracked cache: a new word is not worth a version of their
// schema that older programs refuse.
const countedCache = "counted"

// recordedCache is the kind of a cache in the words of records.
func recordedCache(kind string) string {
	if kind == lower.LengthTrackedCache {
		return countedCache
	}
	return kind
}

// reportedCache is the kind of a cache of a record in the words of reports.
func reportedCache(kind string) string {
	if kind == countedCache {
		return lower.LengthTrackedCache
	}
	return kind
}
