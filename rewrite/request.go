package rewrite

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/opset"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/analysis"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/backend"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/contrib"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/earlier"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/feature"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/plan"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// request is what the options ask for of one model, checked as far as possible before anything
// of the model is run. Neither the request nor its model ever changes.
type request struct {
	model    *onnx.Model // unchanged
	opts     Options
	digest   [sha256.Size]byte // of the model's graph, for the record
	earlier  *earlier.Rewrite  // what an earlier rewrite left; nil for most models
	target   backend.Target
	methods  plan.Methods
	features feature.Asked
	warnings []string

	inspection bool // the model is only looked at
}

// newRequest checks what the options ask for.
func newRequest(m *onnx.Model, opts Options) (*request, error) {
	r := &request{model: m, opts: opts, digest: m.Digest(), features: opts.features()}
	if err := r.loadable(); err != nil {
		return r, err
	}
	if err := r.check(); err != nil {
		if errors.Is(err, ErrNoAttention) {
			return r, err
		}
		return r, unfit(WholeModel, err)
	}
	return r, nil
}

// newInspection is a request to look at the model only.
func newInspection(m *onnx.Model, opts Options, e *earlier.Rewrite) (*request, error) {
	opts.Source.WithoutWeights, opts.Output.OperatorSet = true, 0
	r := &request{model: m, opts: opts, inspection: true, earlier: e, methods: plan.Methods{Config: plan.ReadConfig(m.Path, opts.Source.Configuration, opts.Source.FollowLinks), Earlier: e, Carried: e != nil}}
	if err := r.loadable(); err != nil {
		return r, err
	}
	if err := r.aim(); err != nil {
		return r, unfit(WholeModel, err)
	}
	r.methods.Context = r.known()
	return r, nil
}

// loadable refuses a model that no runtime loads: pieces of it could still be measured,
// and a model that cannot run would be called "verified equal". Where weights may be
// missing, it warns of the first missing one.
func (r *request) loadable() error {
	if err := cmp.Or(r.model.CheckValues(), opset.CheckCounts(r.model)); err != nil {
		return fmt.Errorf("%w; no runtime loads this model, so export it again", err)
	}
	for err := range r.model.UnreadableData() {
		switch {
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w; no runtime loads this model, so copy or export it again", err)
		case !r.opts.Source.WithoutWeights:
			return fmt.Errorf("%w; no runtime loads the model without this file, so put it there. To look at the model without its weights, use rope-rewrite inspect, or Options.Source.WithoutWeights in Go", err)
		case r.warnings == nil:
			r.warnings = []string{fmt.Sprintf("%v; the model can be inspected without this file, but no runtime runs it", err)}
		}
	}
	// Operator sets follow the graph: a file may end before them and look whole.
	if len(r.model.Opsets()) == 0 {
		return &onnx.FileError{Path: r.model.Path, Err: fmt.Errorf("%s names no operator set, so the file may be truncated; copy or download it again", r.model.Path)}
	}
	return nil
}

// check checks what is asked for against the model and what an earlier rewrite left in it.
func (r *request) check() (err error) {
	if r.earlier, err = earlier.Read(r.model); err != nil {
		return err
	}
	carried := false
	if r.earlier == nil {
		if r.opts.Earlier.Restore {
			return errors.New("there is nothing to restore: the model has no record of an earlier rewrite")
		}
	} else {
		if err := r.earlier.Usable(); err != nil {
			return err
		}
		if err := r.checkAgain(); err != nil {
			return err
		}
		if carried = r.opts.carries(); carried {
			if err := r.carryFeatures(); err != nil {
				return err
			}
		}
	}
	if !slices.Contains([]string{"", plan.Exact, plan.Fast}, r.opts.Numerics.Precision) {
		return fmt.Errorf("precision %q: expected exact or fast", short.Name(r.opts.Numerics.Precision))
	}
	if !slices.Contains([]string{"", plan.ExactAngles, plan.OriginalAngles}, r.opts.Numerics.Angles) {
		return fmt.Errorf("angles %q: expected exact or original", short.Name(r.opts.Numerics.Angles))
	}
	opset := max(r.model.Opset(""), r.opts.Output.OperatorSet)
	if err := r.features.Check(r.model, r.earlier.Frees, opset); err != nil {
		return err
	}
	if err := r.aim(); err != nil {
		return err
	}
	if err := plan.Combine(r.opts.Edits); err != nil {
		return err
	}
	r.methods = r.opts.methods()
	r.methods.Config = plan.ReadConfig(r.model.Path, r.opts.Source.Configuration, r.opts.Source.FollowLinks)
	r.methods.Earlier, r.methods.Carried, r.methods.Restored = r.earlier, carried, r.opts.Earlier.Restore
	r.methods.OwnMasks = r.target.Keeps
	r.methods.Angles = cmp.Or(r.opts.Numerics.Angles, r.target.Angles)
	r.methods.Context = r.known()
	return nil
}

// aim finds the target and lets it refuse what it does not have.
func (r *request) aim() (err error) {
	if r.target, err = backend.Of(string(r.opts.Target)); err != nil {
		return plan.Of("target", err)
	}
	return plan.Of("target", r.target.Accepts(backend.Options{Precision: r.opts.Numerics.Precision, CacheType: r.opts.Cache.Type, Scaled: r.opts.Cache.Scales != nil, Ring: r.opts.Cache.Ring}))
}

// known is what methods need to know of the model: from the caller, else from an earlier rewrite,
// else from config.json.
func (r *request) known() rope.Context {
	known := r.opts.Context
	if r.earlier != nil && r.earlier.Record != nil && !r.inspection {
		known = r.earlier.Fill(known)
	}
	known = r.methods.Config.Fill(known)
	known.Unread = r.methods.Config.Unread
	return known
}

// checkAgain refuses what cannot be asked of a model that was rewritten before.
func (r *request) checkAgain() error {
	o, e := r.opts, r.earlier
	edits := len(o.Edits)+len(o.LayerEdits) > 0
	features := o.Documents.Input != "" || o.Documents.Separator != nil || o.Cache.Capacity != 0 || o.Cache.Type != "" || o.LogitsPlaces != "" || o.Cache.Raw || o.Numerics.Angles != "" || o.Numerics.Precision != ""
	switch {
	case o.Earlier.Restore && (edits || features || o.carries()):
		return errors.New("--restore undoes the earlier rewrite and cannot be combined with a method; drop one of them")
	case o.Earlier.Restore && !e.HoldsOps():
		return fmt.Errorf("--target %s changed the model's own nodes, and the file does not contain the old ones; start from the original file (its graph has the SHA-256 %.12s…)", e.Record.Target, e.Record.Graph)
	case !o.Earlier.Restore && !edits && !features:
		return errors.New("the model is already rewritten; give a method, or --restore to remove its methods")
	case !e.HoldsOps():
		return nil
	case o.Layers != nil:
		return errors.New("the model is already rewritten, so --layers cannot leave the other layers unchanged; write SPEC@LAYERS for a method of some layers")
	case o.carries() && slices.ContainsFunc(e.Record.Edits, drawsPositions):
		return errors.New("--base carried cannot continue the random positions of the earlier rewrite; leave --base out and give all methods again")
	}
	return nil
}

// drawsPositions reports whether an edit gives tokens random positions.
func drawsPositions(d provenance.Edit) bool {
	spec, err := rope.ParseSpec(rope.PositionsAxis, d.Given)
	return d.What == rope.PositionsAxis.String() && err == nil && spec.Name == "randomized"
}

// carryFeatures adds the features that the earlier rewrite gave the model.
func (r *request) carryFeatures() (err error) {
	f := &r.features
	for _, d := range r.earlier.Record.Edits {
		switch {
		case d.What == "documents" && f.Documents == "" && f.Separator == nil:
			if name := d.Setting("input"); name.Kind() == rope.Word {
				f.Documents = name.String()
			} else if f.Separator, err = feature.ParseSeparator(d.Given); err != nil {
				return err
			}
		case d.What == "kv" && f.FixedCapacity == 0 && f.CacheType == "":
			f.FixedCapacity, f.CacheLength, f.CacheType = cacheOf(d)
			f.CacheRing = d.Setting("ring").Equal(rope.Bool(true))
		case d.What == "logits" && f.LogitsPlaces == "":
			f.LogitsPlaces = d.Setting("input").String()
		}
	}
	return nil
}

// cacheOf is what an edit of the caches asked for.
func cacheOf(d provenance.Edit) (capacity int64, input, typ string) {
	if c := d.Setting("capacity"); c.Kind() != rope.Absent {
		capacity, input = c.Integer(), d.Setting("input").String()
	}
	if t := d.Setting("type"); t.Kind() == rope.Word {
		typ = t.String()
	}
	return capacity, input, typ
}

// analysis says which sites the target can use.
func (r *request) analysis() analysis.Options {
	onlyMasks, all := r.methods.OnlyMasks(), r.methods.All()
	onlyScalings := !slices.ContainsFunc(all, func(s rope.Spec) bool { return s.Axis != rope.ScalingAxis })
	return analysis.Options{
		Layers: r.opts.Layers, OnlyMasks: onlyMasks, KeepsAttention: r.target.Keeps,
		ScoresAlone:   !r.target.Keeps && !r.opts.Cache.Raw && (len(all) == 0 || onlyMasks),
		RotationAlone: r.target.Rotary && onlyScalings && !r.opts.Cache.Raw && r.features.LeaveAttention(),
		DumpSites:     r.opts.DumpSites, Progress: r.opts.Progress,
	}
}

// checkLayers refuses methods of layers that the model does not have.
func (r *request) checkLayers(a *analysis.Analysis) error {
	if err := r.methods.CheckTypes(); err != nil {
		return unfit(WholeModel, err)
	}
	if err := r.methods.CheckLayers(len(a.Sites)); err != nil {
		return unfit(WholeModel, err)
	}
	return nil
}

// methods are the methods that the options ask for.
func (o Options) methods() plan.Methods {
	m := plan.Methods{Edits: o.Edits, RawCache: o.Cache.Raw, Precision: o.Numerics.Precision}
	for _, e := range o.LayerEdits {
		m.LayerEdits = append(m.LayerEdits, e.plan())
	}
	if o.Earlier.Restore {
		m.Precision = plan.Exact
	}
	return m
}

// features are the features that the options ask for.
func (o Options) features() feature.Asked {
	var scales map[int]contrib.Scales
	if o.Cache.Scales != nil {
		scales = map[int]contrib.Scales{}
	}
	for layer, s := range o.Cache.Scales {
		scales[layer] = contrib.Scales(s)
	}
	return feature.Asked{Documents: o.Documents.Input, Separator: (*feature.Separator)(o.Documents.Separator),
		FixedCapacity: o.Cache.Capacity, CacheRing: o.Cache.Ring, CacheType: o.Cache.Type, CacheScales: scales, CacheLength: cmp.Or(o.Cache.LengthInput, CacheLengthInput), LogitsPlaces: o.LogitsPlaces}
}

// carries reports whether methods start from the values in the graph (base=carried).
func (o Options) carries() bool { return o.Earlier.Carried || o.methods().Carry() }
