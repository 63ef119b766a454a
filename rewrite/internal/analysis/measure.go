package analysis

import (
	"context"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/ranges"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/sharedengine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// Measure measures and proves the delimited sites. The error is site.ErrNoAttention if a rotation was
// needed and no site rotates query and key by position, or else what ended the analysis.
func (f *Found) Measure(ctx context.Context) (*Analysis, error) {
	m := &measurer{Found: f, proving: true, outcomes: map[[32]byte]outcome{}}
	err := m.measure(ctx)
	return &f.Analysis, err
}

// MeasureAgain measures the sites of the given layers in a model whose constants were changed since it
// was analysed: the sites are where they were. Of those of which half holds, only the rotation was
// measured, and is again. It returns what was measured by layer, and why the others could not be.
func MeasureAgain(ctx context.Context, m *onnx.Model, engine *sharedengine.Engine, opts Options, half map[int]bool) (map[int]*measure.Measured, func(int) string, error) {
	f := &Found{engine: engine, opts: opts}
	f.say("reading the graph")
	parts, err := site.Scopes(m)
	if err != nil {
		return nil, nil, err
	}
	for _, part := range parts {
		f.delimit(part)
	}
	f.keepShared()
	again := &measurer{Found: f, only: half, outcomes: map[[32]byte]outcome{}}
	if err := again.measure(ctx); err != nil {
		return nil, nil, err
	}
	measured := map[int]*measure.Measured{}
	for i, s := range f.Sites {
		if s.Attention != nil {
			measured[i] = s.Attention.Measured
		}
	}
	return measured, func(i int) string { return f.Sites[i].Reason }, nil
}

// measurer measures the sites of a model.
type measurer struct {
	*Found
	proving  bool                 // sites are proven too
	prover   engine.Engine        // that proves them
	provedBy string               // its name, for reasons; "" where it is the one that measures
	only     map[int]bool         // the layers that are measured, and whether only their rotation is; nil is all
	outcomes map[[32]byte]outcome // by the hash of a site's structure
}

func (m *measurer) measure(ctx context.Context) error {
	if len(m.delimited) == 0 {
		return nil
	}
	eng, err := m.engine.Get()
	if err != nil {
		return err
	}
	if m.proving {
		if m.prover, m.provedBy, err = m.engine.Proving(); err != nil {
			return err
		}
	}
	for rest := m.delimited; len(rest) > 0; {
		some := rest[:1]
		for len(some) < len(rest) && rest[len(some)].scope == rest[0].scope {
			some = rest[:len(some)+1]
		}
		rest = rest[len(some):]
		if err := m.scope(ctx, eng, some); err != nil {
			return err
		}
	}
	if m.proving {
		m.refusePadded(m.paddedReadLater())
	}
	measured := m.Measured()
	placed := len(measured) < len(m.Sites) && m.still == nil || slices.ContainsFunc(measured, (*Site).placed) // a site that was not measured may be
	if !placed && !m.opts.OnlyMasks {
		if m.still != nil {
			return m.unlikeDistance()
		}
		for i := range m.Sites {
			m.Sites[i].Unchanged, m.Sites[i].Reason = NotRotary, notTurned
		}
		return fmt.Errorf("%w: none of its %d attention layers rotates query and key by position", site.ErrNoAttention, len(m.delimited))
	}
	m.crossBesidePlaced(measured)
	return nil
}

// unlikeDistance leaves all sites of a model unchanged that may have a bias by distance, and says how it
// tells positions apart, and why the op has no such bias.
func (m *measurer) unlikeDistance() error {
	why := fmt.Errorf("%w; the op has slopes and ranges of distances, and this is neither at every length, distance and padding. A mask may still be changed (--mask)", m.still)
	if i := slices.IndexFunc(m.Sites, func(s Site) bool { return s.Attention == nil && s.Reason != "" }); i >= 0 {
		why = fmt.Errorf("%w; the op cannot replace them: %s", m.still, m.Sites[i].Reason)
	}
	for i := range m.Sites {
		m.Sites[i].leave(NotRotary, notTurned)
	}
	return why
}

// placed reports whether a site rotates query and key by position or has a bias by distance, or its model
// rotates them before it.
func (s *Site) placed() bool {
	return s.Attention.Measured.Placed() || s.Attention.Measured.Turned
}

// crossBesidePlaced leaves cross-attention unchanged in a model without another site that is rewritten as
// a whole.
func (m *measurer) crossBesidePlaced(measured []*Site) {
	if slices.ContainsFunc(measured, func(s *Site) bool { return s.placed() && s.Whole == "" }) {
		return
	}
	for _, s := range measured {
		if s.Unchanged == "" && s.Attention.Measured.Attention.Cross {
			s.leave(CrossAlone, "cross-attention is rewritten only together with rotary attention, and no rotary attention is rewritten here")
		}
	}
}

// scope measures and proves the sites of one scope.
func (m *measurer) scope(ctx context.Context, eng engine.Engine, found []delimited) error {
	g := found[0].scope.View
	var values []string
	var sites []*site.Site
	for _, d := range found {
		values = append(append(values, d.site.SizedValues()...), d.site.CrossValues()...)
		if m.opts.ScoresAlone {
			values = append(values, d.site.TurnedValues()...)
		}
		if m.opts.rotationMeasured() {
			values = append(values, d.site.UnroundedValues()...)
		}
		if m.opts.RotationAlone {
			values = append(values, d.site.RotationValues()...)
		}
		sites = append(sites, d.site)
	}
	m.say("measuring shapes")
	table, err := eval.MeasureShapes(ctx, eng, g, ir.Unique(values))
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, d := range found {
			m.Sites[d.index].Reason = fmt.Sprintf("the shapes of the graph could not be measured: %v", err)
			if other := measure.OtherPlaces(ctx, eng, g, d.site.Core); other != nil {
				m.Sites[d.index].Reason = other.Error()
			}
		}
		return nil
	}
	sized, table := site.Size(sites, table)
	l := &eval.Evaluator{Graph: g, Loader: eval.Loader{Engine: eng, Table: table}}
	if err := m.sites(ctx, l, found, sized); err != nil {
		return err
	}
	if s := table.SizesSentence(); s != "" && slices.ContainsFunc(found, func(d delimited) bool { return m.Sites[d.index].Attention != nil }) {
		m.warn(s)
	}
	m.misaligned(found)
	m.leaveUnasked()
	if !m.proving {
		return nil
	}
	refused, err := m.paddedRead(ctx, l, found)
	if err != nil {
		return err
	}
	m.refusePadded(refused)
	return nil
}

// misaligned warns of sites that see the wrong keys in later calls: what such a model gives is wrong before any rewrite.
func (m *measurer) misaligned(found []delimited) {
	var layers []int
	for _, d := range found {
		if a := m.Sites[d.index].Attention; a != nil && a.Measured.Cases.FromFirst() {
			layers = append(layers, d.index)
		}
	}
	if len(layers) > 0 {
		m.warn(fmt.Sprintf("the original is wrong in calls with cached tokens: in %s, token i of a call sees the first i + 1 keys alone, and not itself. "+
			"An op with is_causal does so if cached and new keys were joined before it. The rewritten model computes the same; export the model again", ranges.Layers(ranges.Text(layers))))
	}
}

// leaveUnasked leaves the sites unchanged that were not asked for.
func (m *measurer) leaveUnasked() {
	for i := range m.Sites {
		if m.opts.Layers != nil && !m.opts.Layers(i) {
			m.Sites[i].Unchanged, m.Sites[i].Reason = NotAsked, "not among the layers asked for"
		}
	}
}
