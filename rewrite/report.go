package rewrite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/analysis"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/earlier"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Status says what became of a site.
type Status string

const (
	Rewritten Status = "rewritten" // verified equal, and replaced
	Unchanged Status = "unchanged" // left as it is, with the reason
)

// Kind says by which rule a site is unchanged.
type Kind string

const (
	NotDelimited Kind = Kind(analysis.NotDelimited) // where the attention begins and ends is not seen
	SharesCache  Kind = Kind(analysis.SharesCache)  // another site reads or writes the same cache
	NotMeasured  Kind = Kind(analysis.NotMeasured)  // what it computes is not seen
	NotVerified  Kind = Kind(analysis.NotProven)    // the op computes something else
	NotRotary    Kind = Kind(analysis.NotRotary)    // it turns neither query nor key by position
	NotAskedFor  Kind = Kind(analysis.NotAsked)     // Options.Layers leaves it out
	CrossAlone   Kind = Kind(analysis.CrossAlone)   // no rotary attention stands beside it
	PaddingRead  Kind = Kind(analysis.PaddingRead)  // other tokens depend on queries of padded ones
	LeftBefore   Kind = Kind(analysis.Earlier)      // an earlier rewrite left it unchanged
)

// Form says how a site is written.
type Form string

const (
	OwnNodes Form = Form(lower.OwnNodes) // the model's own, with what was asked for in them
	Inlined  Form = Form(lower.Inlined)  // the op's body in plain ONNX operators

	GroupQuery Form = Form(lower.GroupQuery) // ONNX Runtime's op
)

//go:generate go run ../cmd/dev/gendocs -report -o ../docs/report.schema.json

// ReportVersion is the version of a report's JSON (docs/report.schema.json). It grows when a field is
// renamed or taken away.
const ReportVersion = 1

// Report says what was found and done.
type Report struct {
	Version  int      `json:"report_version"` // ReportVersion
	Model    string   `json:"model"`
	Sites    []Site   `json:"layers"`
	Edits    []string `json:"edits"`
	Warnings []string `json:"warnings"`
	Output   string   `json:"output"`  // file written, "" if none
	Seconds  float64  `json:"seconds"` // what it took; the command counts opening and writing too

	// Weights are files of weights that were put beside an output in another folder.
	Weights []onnx.PlacedFile `json:"weights,omitempty"`

	// Again says that the sites were rewritten before: they hold the op, and were proven then.
	Again bool `json:"again,omitempty"`

	// OperatorSet says from which version of the standard operators to which the model was
	// raised before anything else. nil where it was not.
	OperatorSet *OperatorSet `json:"opset,omitempty"`

	// Definition says whether the model runs without the op library. nil where nothing was
	// replaced by the op, or no definition was asked for.
	Fallback *Fallback `json:"fallback,omitempty"`

	// Record is what stands in the metadata of the model: what was done, with every
	// parameter resolved. nil where nothing was done.
	Record *provenance.Record `json:"record,omitempty"`
}

func newReport(m *onnx.Model) *Report {
	return &Report{Version: ReportVersion, Model: m.Path, Sites: []Site{}, Edits: []string{}, Warnings: []string{}}
}

// Site is one attention of the model. What was not measured, because the site
// could not be measured, is zero.
type Site struct {
	Node      string  `json:"node"`
	Scope     string  `json:"scope,omitempty"` // the graph inside a node that it stands in; "" is the model's own
	Layer     int     `json:"layer"`           // its place among the sites, in the graph's order
	Op        string  `json:"op"`              // what the exporter wrote its core as
	Heads     int     `json:"heads"`
	KVHeads   int     `json:"kv_heads"`
	HeadSize  int     `json:"head_size"`
	RotaryDim int     `json:"rotary_dim"`
	Layout    string  `json:"layout"`
	Theta     float64 `json:"theta"`             // base of the frequencies before a scaling that they carry; 0 when they follow none
	Scaling   string  `json:"scaling,omitempty"` // what the frequencies were scaled by before the model was exported; empty when by nothing that is known
	Mask      string  `json:"mask"`

	// AfterRotation says which of query and key are normed, scaled by numbers for
	// tokens or heads (a temperature), or weighted by channel, behind their rotation;
	// empty for most.
	AfterRotation string `json:"after_rotation,omitempty"`

	// Unknown is how far the frequencies may be off, relative to themselves, where
	// 16-bit arithmetic did not show them to float32 accuracy and no closed form
	// explained them; 0 otherwise.
	Unknown float64 `json:"frequencies_known_to,omitempty"`

	// RotationOnly says that the attention could not be measured, for Reason, and
	// that the constants of its rotation alone were changed (PlainONNX).
	RotationOnly bool `json:"rotation_only,omitempty"`

	// ScoresOnly says that the rotation could not be measured, for Reason: the model's own
	// nodes turn query and key as before, and the op does the rest. Masks and caches can be
	// changed, scalings and position maps cannot.
	ScoresOnly bool `json:"scores_only,omitempty"`

	// CrossAttention says that the keys are those of another text, an encoder's: nothing in the
	// site is turned by position, and methods leave it as it is.
	CrossAttention bool `json:"cross_attention,omitempty"`

	// Form says how the site is written, where that is not the fused op, and FormReason why
	// it is not the target's first choice.
	Form       Form   `json:"form,omitempty"`
	FormReason string `json:"form_reason,omitempty"`

	Cache  string `json:"cache"` // "none", "growing", "length-tracked" (each row has a length) or "fixed"
	Status Status `json:"status"`
	Kind   Kind   `json:"kind,omitempty"` // by which rule it is unchanged; empty for a site that is rewritten
	Reason string `json:"reason"`         // why it is unchanged, or why its rotation or scores alone are known
	Proof  *Proof `json:"verification"`

	// Attention is what was measured, before any edit; nil for a kept site
	// that could not be measured.
	Attention *rope.Attention `json:"-"`
}

// OperatorSet says that the model was raised to a newer version of the standard operators.
type OperatorSet struct {
	From      int64 `json:"from"`
	To        int64 `json:"to"`
	Converted int   `json:"converted"` // nodes that are written in another way now
}

// Fallback says whether the model has its op in standard operators too, for runtimes
// without the op library (package rewrite/definition).
type Fallback struct {
	Ops      []string `json:"ops"`                 // names of the op that are defined; none where Reason says why
	Bytes    int      `json:"bytes"`               // that the functions take in the file
	MaxError float64  `json:"max_error,omitempty"` // of the functions against float64, relative to the largest number of a result
	Reason   string   `json:"reason,omitempty"`    // why there is none
}

// Proof says how the op compared with the original on random inputs.
type Proof = provenance.Proof

// Rewritten counts the sites that were replaced.
func (r *Report) Rewritten() int { return r.count(func(s Site) bool { return s.Status == Rewritten }) }

// Unproven counts the sites that were asked for and could not be rewritten.
func (r *Report) Unproven() int { return r.count(Site.unproven) }

func (s Site) unproven() bool { return s.Status == Unchanged && s.Kind != NotAskedFor }

// partial is the error for sites that were asked for and could not be rewritten,
// nil where there is none.
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
	if m.RotationOnly {
		return
	}
	s.AfterRotation = strings.Join(slices.DeleteFunc([]string{a.Site.AfterRotation(), m.Attention.DescribeFactors()}, func(text string) bool { return text == "" }), ", ")
	s.Mask, s.Cache = m.Attention.Mask.String(), lower.CacheOf(m)
}

// carries notes by which method the frequencies of the site are scaled already.
func (s *Site) carries(known rope.Context) {
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
	if of.Unchanged != "" {
		s.Status, s.Kind = Unchanged, Kind(of.Unchanged)
	}
	return s
}

// report makes the report of what was done.
func (r *request) report(v values) *Report {
	out := newReport(r.model)
	if v.analysis != nil {
		out.Again = v.analysis.Again
		for _, s := range v.analysis.Sites {
			out.Sites = append(out.Sites, siteOf(s))
		}
		out.warn(v.analysis.Warnings...)
	}
	if v.plan != nil {
		for i := range out.Sites {
			out.Sites[i].carries(r.methods.Context)
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

// SiteOf returns what a record says of a site, as it was before any edit, in the words
// of a report. The site stands for all layers of the record's.
func SiteOf(r provenance.Site) Site {
	s := Site{Scope: r.Scope, Op: r.Op, Status: Rewritten, Proof: r.Proof, AfterRotation: r.AfterRotation, Unknown: r.Unknown,
		RotationOnly: r.RotationOnly, Reason: r.Reason, Form: Form(r.Form), Cache: reportedCache(r.Cache), Mask: r.Original.Mask.String()}
	s.value(r.Original)
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
