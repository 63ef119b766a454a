package rewrite

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Options says how a model is evaluated and what its sites become.
type Options struct {
	Runtime string   // path of the ONNX Runtime shared library; empty looks in the usual places
	Library string   // path of the op library; empty looks in the usual places
	Worker  []string // command (of a program that calls ServeIfWorker first) that evaluates; nil evaluates in this process, which a hostile graph may end

	Edits       []rope.Spec    // methods, at most one per axis; none keeps the meaning; a scaling leaves windowed layers alone where others see all keys
	LayerEdits  []LayerEdit    // methods of single layers; AllLayers for all
	Context     rope.Context   // what methods need to know of the model
	ExactAngles bool           // drop the exporter's rounding of angles to float32
	RawCache    bool           // cache keys un-rotated, and rotate them when they are read; methods that need it do so by themselves
	Precision   string         // of products in 16 bits: "exact" or "fast", as the op's attribute (docs/ops.md); empty is exact, or what an earlier rewrite gave
	Layers      func(int) bool // which sites are rewritten, by their order in the graph; nil is all
	AllowKept   bool           // sites that were asked for and stay kept are no error (ErrPartial); a cache of fixed capacity needs all the same

	Target Target // what sites become; empty is Ops

	// OperatorSet is the version of the standard operators that the model is raised to first
	// (package onnx/opset), for what the op's definition or a host needs; 0 leaves it. A model
	// against a newer version is an error, and so is a node that cannot be converted.
	OperatorSet int64

	// NoDefinition leaves out the op's definition in plain ONNX operators (package
	// definition), a few kilobytes that let the model run where the op library is missing.
	NoDefinition bool

	// Carried starts from what an earlier rewrite made of the model, instead of from what it
	// was before: methods come on top of the earlier ones. A scaling with base=carried asks
	// for the same. It changes nothing for other models.
	Carried bool

	// Restore takes the methods of an earlier rewrite back: the model is then what a
	// rewrite without any method gives. It is an error on other models, and beside a method.
	Restore bool

	Documents     string     // name of an int64 input [batch, past + length] to add, for masks over documents (DocumentsInput); empty adds none
	Separator     *Separator // count document ids from the model's own tokens instead; nil does not
	FixedCapacity int64      // tokens that a key-value cache of fixed capacity holds; 0 leaves the cache growing
	CacheLength   string     // name of the int32 input [batch] that goes with it; empty is CacheLengthInput

	LogitsPlaces string // name of an int64 input [batch] to add, which says of which token of each row the logits are computed, the last where it is not fed (LogitsPlacesInput); empty leaves the logits of every token

	DumpSites string // folder for sites that are delimited and kept, each by itself with inputs, for reports; empty writes none

	Memory uint64 // bytes that this program's own data and, beyond its start, the worker may each take; more is ErrMemory. 0 gives the worker 16 GiB and keeps sites that need more

	Configuration []byte // what config.json says, where it is something else than the one beside the model; nil reads that one

	WithoutWeights bool // external data may be missing: the model is looked at, and edited, without it; files that are there must still be whole

	Progress func(string) // told what is being done; may be nil

	inspect  bool          // nothing is to be changed (Inspect)
	exceeded func()        // called when an engine is refused memory; nil where that concerns its piece alone
	known    *outcomes     // of earlier rewrites of the same model, which need not be measured again; nil keeps none
	shared   *sharedEngine // that all of one rewrite evaluates with; nil makes a new one each time
}

// ErrNoAttention says that a model has no rotary attention.
var ErrNoAttention = errors.New("no rotary attention in the model")

// ErrPartial says that attention sites that were asked for stay as they are: the
// model lacks there what it was to have.
var ErrPartial = errors.New("not every attention could be rewritten")

// partialError is an ErrPartial in words of its own.
type partialError string

func (e partialError) Error() string { return string(e) }

func (e partialError) Is(target error) bool { return target == ErrPartial }

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
// A model that Rewrite wrote before is edited again from the original values that its
// record keeps (package provenance): methods never stack, unless Options.Carried or a
// scaling's base=carried asks for it. Its sites are not proven again; they hold the op.
//
// The report has every site, rewritten or kept with the reason. The error is
// ErrNoAttention when the model has no rotary attention, ErrPartial when a site
// that was asked for is kept and Options.AllowKept does not allow it, or says what
// kept the whole work from being done (a library missing, which is looked for
// before the graph is looked at; *EditError when a method does not fit). When the
// context's deadline passes the error is the context's. After an error m is no
// model to be saved.
func Rewrite(ctx context.Context, m *onnx.Model, opts Options) (*Report, error) {
	start := time.Now()
	opts, err := opts.FindLibraries()
	if err != nil {
		return newReport(m), err
	}
	warnings, err := loadable(m, opts)
	if err != nil {
		return newReport(m), err
	}
	limited, end := opts.limited(ctx)
	defer end()
	var digest [sha256.Size]byte // for the record
	if !opts.inspect {
		digest = m.Digest()
	}
	opts.shared = &sharedEngine{}
	defer opts.shared.close()
	if err := withoutDefinition(limited, m, opts); err != nil {
		return newReport(m), err
	}
	raised, said, err := opts.raise(m)
	if err != nil {
		return newReport(m), err
	}
	warnings = append(warnings, said...)
	if raised == nil {
		opts.OperatorSet = 0 // it has that version already, which is no change for the record
	}
	calls, refused := inline(m)
	report, err := rewriteGraphs(limited, m, opts, digest)
	report.OperatorSet = raised
	if cause := context.Cause(limited); ctx.Err() == nil && cause != nil {
		err = cause
	}
	report.warn(warnings...)
	err = calls.finish(report, err, refused)
	if err == nil && !opts.AllowKept {
		err = report.partial()
	}
	report.Seconds = time.Since(start).Seconds()
	return report, err
}

// rewriteGraphs does so for a model whose functions are inlined.
func rewriteGraphs(ctx context.Context, m *onnx.Model, opts Options, digest [sha256.Size]byte) (*Report, error) {
	report := newReport(m)
	// Operator sets stand behind the graph: a file may end before them and look whole.
	if len(m.Opsets()) == 0 {
		return report, fmt.Errorf("%s names no operator set that it uses, so the file may be truncated; copy or download it again", m.Path)
	}
	r, err := newRequest(m, opts, digest)
	if errors.Is(err, ErrNoAttention) {
		return report, err
	}
	if err != nil {
		return report, &EditError{Layer: WholeModel, Err: err}
	}
	sites, err := r.analyse(ctx, report)
	if err != nil {
		return report, err
	}
	if err := r.check(ctx, report); err != nil {
		return report, err
	}
	plan, err := r.plan(ctx, sites, report)
	if err != nil {
		return report, err
	}
	return report, r.write(ctx, m, plan, report)
}

// analyse fills the report with the model's sites and returns those that can be edited:
// measured and proven, or with the ops of an earlier rewrite.
func (r *request) analyse(ctx context.Context, report *Report) (sites []measure.Attention, err error) {
	if r.earlier != nil && r.earlier.holdsOps() {
		if sites, r.written, err = r.earlier.sites(r.model, report); err != nil {
			return nil, &EditError{Layer: WholeModel, Err: err}
		}
		return sites, r.checkLayerEdits(report)
	}
	a := r.opts.analyser(report, r.backend.keepsAttention())
	if r.opts.known != nil {
		if data, err := r.model.Marshal(); err == nil {
			a.graph = fmt.Sprintf("%q %x", r.model.Path, sha256.Sum256(data))
		}
	}
	r.analyser = a
	found, err := a.find(ctx, r.model)
	if err != nil {
		return nil, err
	}
	if err := r.checkLayerEdits(report); err != nil {
		return nil, err
	}
	return a.measure(ctx, found)
}

func (r *request) checkLayerEdits(report *Report) error {
	if err := r.opts.checkLayerEdits(len(report.Sites), r.config); err != nil {
		return &EditError{Layer: WholeModel, Err: err}
	}
	return nil
}

// DefaultOutput returns where the command writes when nothing else is said:
// model.onnx becomes model.rope.onnx beside it.
func DefaultOutput(path string) string {
	return strings.TrimSuffix(path, filepath.Ext(path)) + ".rope.onnx"
}
