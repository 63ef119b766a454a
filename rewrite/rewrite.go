package rewrite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Options says how a model is evaluated and what its sites become.
type Options struct {
	Runtime string   // path of the ONNX Runtime shared library; empty looks in the usual places
	Library string   // path of the op library; empty looks in the usual places
	Worker  []string // command (of a program that calls ServeIfWorker first) that evaluates; nil evaluates in this process, which a hostile graph may end

	Edits       []rope.Spec    // methods, at most one per axis; none keeps the meaning
	Context     rope.Context   // what methods need to know of the model
	ExactAngles bool           // drop the exporter's rounding of angles to float32
	RawCache    bool           // cache keys un-rotated, and rotate them when they are read; methods that need it do so by themselves
	Layers      func(int) bool // which sites are rewritten, by their order in the graph; nil is all

	Documents     string // name of an int64 input [batch, past + length] to add, for masks over documents (DocumentsInput); empty adds none
	FixedCapacity int64  // tokens that a key-value cache of fixed capacity holds; 0 leaves the cache growing
	CacheLength   string // name of the int32 input [batch] that goes with it; empty is CacheLengthInput

	Progress func(string) // told what is being done; may be nil
}

// ErrNoAttention says that a model has no rotary attention.
var ErrNoAttention = errors.New("no rotary attention in the model")

// EditError says that what was asked for does not fit what was measured, or
// lacks a parameter.
type EditError struct {
	Layer int // WholeModel when it is no matter of one layer
	Err   error
}

// WholeModel is the Layer of what concerns all of them.
const WholeModel = -1

func (e *EditError) Error() string {
	if e.Layer == WholeModel {
		return e.Err.Error()
	}
	return fmt.Sprintf("layer %d: %v", e.Layer, e.Err)
}
func (e *EditError) Unwrap() error { return e.Err }

// ServeIfWorker makes the process an evaluating worker when it was started as
// one (Options.Worker), and does not return then. Call it first in main.
func ServeIfWorker() { engine.ServeIfWorker() }

// Rewrite finds the attention sites of m, proves for each that the fused op
// computes the same, and replaces those that are proven by the op with the
// edits applied. m is changed in memory; the file it came from is not touched.
//
// The report has every site, rewritten or kept with the reason. The error is
// ErrNoAttention when the model has no rotary attention, or says what kept the
// whole work from being done (ONNX Runtime missing; *EditError when a method
// does not fit; ErrPartial when a fixed cache was asked for and a site is kept).
// After an error m is no model to be saved.
func Rewrite(ctx context.Context, m *onnx.Model, opts Options) (*Report, error) {
	start := time.Now()
	report := &Report{Model: m.Path, Sites: []Site{}, Edits: []string{}, Warnings: []string{}}
	defer func() { report.Seconds = time.Since(start).Seconds() }()
	inputs, err := additions(m, opts)
	if err != nil {
		return report, &EditError{Layer: WholeModel, Err: err}
	}
	cache, err := opts.fixed()
	if err != nil {
		return report, &EditError{Layer: WholeModel, Err: err}
	}
	found, err := analyse(ctx, m, opts, report)
	if err != nil {
		return report, err
	}
	if cache != nil {
		if err := cache.whole(report); err != nil {
			return report, err
		}
	}
	config := readConfig(m.Path)
	opts.Context = config.fill(opts.Context)
	report.warn(config.compare(found)...)
	for _, spec := range opts.Edits {
		report.Edits = append(report.Edits, spec.Axis.String()+" "+spec.String())
	}
	if inputs.documents != "" {
		report.Edits = append(report.Edits, "documents input:"+inputs.documents)
	}
	if cache != nil {
		report.Edits = append(report.Edits, fmt.Sprintf("kv fixed:capacity=%d,input=%s", cache.capacity, inputs.cacheLength))
	}
	var changes []change
	raw := false
	for _, f := range found {
		site := &report.Sites[f.index]
		if f.lifted == nil || site.Status == Kept {
			continue
		}
		a, warnings, err := edit(f.lifted.attention, opts)
		if err != nil {
			return report, &EditError{Layer: site.Layer, Err: err}
		}
		report.warn(warnings...)
		raw = raw || a.Cache == rope.Raw && f.lifted.layouts.cached
		if err := inputs.check(a.Mask); err != nil {
			return report, &EditError{Layer: site.Layer, Err: err}
		}
		w, err := f.site.wiring(f.lifted)
		if err != nil {
			return report, fmt.Errorf("layer %d: %w", site.Layer, err)
		}
		if cache != nil {
			if err := cache.takes(m, w); err != nil {
				return report, &EditError{Layer: site.Layer, Err: err}
			}
			w.cacheLength = inputs.cacheLength
		}
		w.documents = inputs.documents
		nodes, constants, err := lower(w, a)
		if err != nil {
			return report, fmt.Errorf("layer %d: %w", site.Layer, err)
		}
		changes = append(changes, change{site: f.site, mask: w.mask, reads: a.Mask, nodes: nodes, constants: constants})
	}
	if raw {
		report.Edits = append(report.Edits, "cache raw")
	}
	if err := inputs.used(changes); err != nil {
		return report, &EditError{Layer: WholeModel, Err: err}
	}
	if err := apply(m, changes); err != nil {
		return report, err
	}
	if cache != nil {
		if err := cache.finish(m, changes); err != nil {
			return report, &EditError{Layer: WholeModel, Err: err}
		}
	}
	if len(changes) > 0 {
		inputs.declare(m.Graph, changes)
	}
	return report, nil
}

// analysed is one site with what was measured of it.
type analysed struct {
	index  int // in the report
	site   *site
	lifted *lifted
}

// analyse fills the report's sites and returns those that were delimited.
func analyse(ctx context.Context, m *onnx.Model, opts Options, report *Report) ([]analysed, error) {
	say := opts.Progress
	if say == nil {
		say = func(string) {}
	}
	say("reading the graph")
	g, err := newGraph(m)
	if err != nil {
		return nil, err
	}
	if done := ownNodes(m); done > 0 {
		return nil, fmt.Errorf("%w that is not rewritten already (%d %s nodes are of an earlier run); start from the original file", ErrNoAttention, done, opsDomain)
	}
	var found []analysed
	var values []string
	candidates := g.find()
	if cores := g.unturned(candidates); cores != nil && !opts.onlyMasks() {
		for _, c := range candidates {
			report.Sites = append(report.Sites, Site{Node: label(c.node), Op: c.node.OpType, Status: Kept, Reason: notTurned})
		}
		report.number()
		return nil, fmt.Errorf("%w: its %d attentions turn neither query nor key, %s", ErrNoAttention, len(cores), g.placed(ctx, opts, cores))
	}
	for _, c := range candidates {
		var s *site
		refusal := c.refusal
		if refusal == nil {
			if s, refusal = g.delimit(*c.core); refusal != nil {
				refusal.Op = c.node.OpType
			}
		}
		if refusal != nil {
			report.keep(refusal)
			continue
		}
		report.Sites = append(report.Sites, Site{Node: label(c.node), Op: c.node.OpType, Status: Kept})
		found = append(found, analysed{index: len(report.Sites) - 1, site: s})
		values = append(values, s.measured()...)
	}
	if len(report.Sites) == 0 {
		return nil, fmt.Errorf("%w: it has no softmax over products of hidden states", ErrNoAttention)
	}
	found = report.keepShared(found)
	if len(found) == 0 {
		report.number()
		return nil, nil
	}
	if _, err := customop.FindLibrary(customop.Options{Library: opts.Library, Model: m.Path}); err != nil {
		return found, report.keepAll(found, fmt.Errorf("no proof without the op library: %w", err))
	}
	eng, err := opts.engine()
	if err != nil {
		return nil, err
	}
	defer eng.Close()
	say("measuring shapes")
	table, err := measureShapes(ctx, eng, g, unique(values))
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return found, report.keepAll(found, fmt.Errorf("the shapes of the graph could not be measured: %w", err))
	}
	for _, f := range found {
		f.site.settle(table)
	}
	if err := measureAll(ctx, &lifter{graph: g, loader: loader{engine: eng, table: table}}, found, opts, report, say); err != nil {
		return nil, err
	}
	report.number()
	rotary := len(found) < len(report.Sites) // a site that was not delimited may be
	for _, f := range found {
		rotary = rotary || f.lifted == nil || f.lifted.rotary()
	}
	if !rotary && !opts.onlyMasks() {
		for i := range report.Sites {
			report.Sites[i].Status, report.Sites[i].Reason = Kept, notTurned
		}
		return nil, fmt.Errorf("%w: none of its %d attention sites turns query and key by position", ErrNoAttention, len(found))
	}
	return found, nil
}

const notTurned = "it turns neither query nor key by position"

// onlyMasks reports whether a mask is asked for and nothing that needs a
// rotation: attention without one can have it.
func (o Options) onlyMasks() bool {
	return len(o.Edits) > 0 && !slices.ContainsFunc(o.Edits, func(s rope.Spec) bool { return s.Axis != rope.MaskAxis })
}

// measureAll lifts and proves every site, once per structure.
func measureAll(ctx context.Context, l *lifter, found []analysed, opts Options, report *Report, say func(string)) error {
	type outcome struct {
		lifted *lifted
		proof  *Proof
		err    error
	}
	outcomes := map[[32]byte]outcome{}
	consts := map[string][32]byte{}
	for i := range found {
		f := &found[i]
		key := f.site.hash(l.graph, l.table, consts)
		o, seen := outcomes[key]
		if !seen {
			say(fmt.Sprintf("proving attention %d of %d", i+1, len(found)))
			o.lifted, o.err = l.lift(ctx, f.site)
			if o.err == nil {
				o.proof, o.err = l.prove(ctx, f.site, o.lifted)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			outcomes[key] = o
		}
		site := &report.Sites[f.index]
		var refusal *Refusal
		switch {
		case errors.As(o.err, &refusal):
			site.Reason = refusal.Node + ": " + refusal.Reason
			if seen {
				site.Reason = "as in an earlier layer of the same structure, " + site.Reason
			}
		case o.err != nil:
			return o.err
		default:
			f.lifted = o.lifted
			site.describe(o.lifted)
			site.Proof = o.proof
			site.Status = Rewritten
		}
	}
	for i := range report.Sites {
		if opts.Layers != nil && !opts.Layers(i) {
			report.Sites[i].Status, report.Sites[i].Reason = Kept, notSelected
		}
	}
	return nil
}

func (o Options) engine() (engine.Engine, error) {
	c := engine.Config{Runtime: o.Runtime, Library: o.Library, Threads: 1, Memory: 16 << 30}
	if len(o.Worker) > 0 {
		return engine.NewWorker(c, o.Worker[0], o.Worker[1:]...)
	}
	return engine.NewLocal(c)
}

// ownNodes counts the nodes that this project wrote.
func ownNodes(m *onnx.Model) int {
	count := 0
	for _, n := range m.Graph.Nodes {
		if n.Domain == opsDomain {
			count++
		}
	}
	return count
}

// edit applies the methods to a value. A site that turns nothing has no
// frequencies to scale and no distances to map, but a mask.
func edit(a rope.Attention, opts Options) (rope.Attention, []string, error) {
	still := len(a.Encoding.Frequencies) == 0
	a.Encoding.ExactAngles = opts.ExactAngles && !still
	if opts.RawCache && !still {
		a.Cache = rope.Raw
	}
	var warnings []string
	for _, spec := range opts.Edits {
		if still && spec.Axis != rope.MaskAxis {
			continue
		}
		var more []string
		var err error
		if a, more, err = spec.Apply(a, opts.Context); err != nil {
			return a, warnings, err
		}
		warnings = append(warnings, more...)
	}
	return a, warnings, nil
}

// DefaultOutput returns where the command writes when nothing else is said:
// model.onnx becomes model.rope.onnx beside it.
func DefaultOutput(path string) string {
	return strings.TrimSuffix(path, filepath.Ext(path)) + ".rope.onnx"
}
