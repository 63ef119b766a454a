package rewrite

import (
	"fmt"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/backend"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/feature"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/plan"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Options says how a model is evaluated and what its sites become. The zero value fuses attention and keeps
// what the model computes.
type Options struct {
	Edits          []rope.Spec    // methods for the whole model, at most one per axis. A scaling skips sliding-window layers if the model also has full-attention layers
	LayerEdits     []LayerEdit    // methods of single layers; AllLayers for all
	Layers         func(int) bool // which sites are rewritten, by their order in the graph; nil is all
	Context        rope.Context   // what methods need to know of the model
	Target         Target         // what sites become; empty is Ops
	AllowUnchanged bool           // sites that were asked for and stay unchanged are no error (ErrPartial); a cache of fixed capacity needs all the same

	Numerics     Numerics
	Cache        Cache
	Documents    Documents
	LogitsPlaces string // name of an int64 input [batch] to add, which says of which token of each row the logits are computed, the last where it is not fed (LogitsPlacesInput); empty leaves the logits of every token

	Earlier    Earlier
	Source     Source
	Output     Output
	Evaluation Evaluation

	DumpSites string       // folder for sites that are delimited and stay unchanged, each by itself with inputs, for reports; empty writes none
	Progress  func(string) // told what is being done; may be nil
}

// Numerics says how rotated queries and keys are rounded.
type Numerics struct {
	ExactAngles bool   // drop the exporter's rounding of angles to float32
	Precision   string // of products in 16 bits: "exact" or "fast", as the op's attribute (docs/ops.md); empty is exact, or what an earlier rewrite gave
}

// Cache says what becomes of the key-value cache.
type Cache struct {
	Raw         bool   // keys are cached un-rotated, and rotated when they are read; methods that need it do so by themselves
	Capacity    int64  // tokens that buffers of fixed size hold; 0 leaves the cache growing
	LengthInput string // name of the int32 input [batch] that goes with them; empty is CacheLengthInput
}

// Documents says where masks over documents take their ids from. The zero value is for other masks.
type Documents struct {
	Input     string     // name of an int64 input [batch, past + length] to add (DocumentsInput)
	Separator *Separator // count the ids from the model's own tokens instead
}

// Earlier says where a model starts that was rewritten before: by default from the values that it had before
// that, so that methods never stack.
type Earlier struct {
	// Carried starts from what the earlier rewrite made of the model: methods come on top of the
	// earlier ones. A scaling with base=carried asks for the same. It changes nothing for other models.
	Carried bool

	// Restore takes the methods of the earlier rewrite back: the model is then what a
	// rewrite without any method gives. It is an error on other models, and beside a method.
	Restore bool
}

// Source says how the model and what stands beside it are read.
type Source struct {
	Configuration  []byte // what config.json says, where it is something else than the one beside the model; nil reads that one
	WithoutWeights bool   // external data may be missing: the model is looked at, and edited, without it; files that are there must still be whole
}

// Output says what the rewritten model is, beside its sites.
type Output struct {
	// OperatorSet is the version of the standard operators that the model is converted to first
	// (package onnx/opset), for what the op's fallback or a host needs; 0 leaves it. A model
	// against a newer version is an error, and so is a node that cannot be converted.
	OperatorSet int64

	// NoFallback leaves out the op in standard operators (package definition), a few
	// kilobytes that let the model run where the op library is missing.
	NoFallback bool
}

// Evaluation says how pieces of the model are run.
type Evaluation struct {
	Runtime string   // path of the ONNX Runtime shared library; empty looks in the usual places
	Library string   // path of the op library; empty looks in the usual places
	Worker  []string // command (of a program that calls ServeIfWorker first) that evaluates; nil evaluates in this process, which a hostile graph may end
	Memory  uint64   // bytes that this program's own data and, beyond its start, the worker may each take; more is ErrMemory. 0 gives the worker 16 GiB and leaves sites unchanged that need more
}

// LayerEdit is a method for some layers only.
type LayerEdit struct {
	Spec   rope.Spec
	Layers func(int) bool // which sites, by their order in the graph; nil means by Type
	Type   string         // those of a type in config.json's layer_types
	Where  string         // the choice as the report says it, for example "layers 0-3"
}

func (e LayerEdit) String() string { return plan.LayerEdit(e).String() }

// AllLayers gives a method to every layer. A scaling in Options.Edits leaves
// layers with a window alone in models that have others too.
func AllLayers(spec rope.Spec) LayerEdit {
	return LayerEdit{Spec: spec, Layers: func(int) bool { return true }, Where: "all layers"}
}

// Separator lets the patched model count documents by itself: each begins with
// a certain token, or ends with it. It is for models without a cache: with one,
// a call sees new tokens only and cannot tell to which document the others
// belong.
type Separator struct {
	Token int64
	Ends  bool // the token is a document's last one instead of its first
}

func (s Separator) String() string { return feature.Separator(s).String() }

// The usual names of inputs that a rewrite adds.
const (
	DocumentsInput    = "document_ids"  // holds document ids
	CacheLengthInput  = "cache_length"  // says how many tokens a cache of fixed capacity holds in each row
	LogitsPlacesInput = "logits_places" // says of which token of each row the logits are computed
)

// Target says what sites become.
type Target string

const (
	// Ops replaces a site by the fused op. It is the default.
	Ops Target = "ops"
	// PlainONNX writes standard ONNX operators alone, so that the result runs without
	// the op library and in runtimes that know no functions. Methods that change
	// frequencies, gain and visibility alone go into the model's own nodes: other
	// constants of its rotation, keys hidden before its softmax. For others the op's body
	// takes the site's place.
	PlainONNX Target = "onnx"
	// Contrib replaces a site by ONNX Runtime's own com.microsoft.GroupQueryAttention, for
	// hosts that have a fast kernel of that and none of the op. It serves what that op can
	// compute, on rows without padding on the left. "contrib:onnxruntime=1.22" names the
	// oldest version that is to run the result.
	Contrib Target = "contrib"
)

// Targets lists the targets, the default one first.
func Targets() (list []Target) {
	for _, name := range backend.Names() {
		list = append(list, Target(name))
	}
	return list
}

// Name is the target without the setting that may stand behind it: Contrib for
// "contrib:onnxruntime=1.22".
func (t Target) Name() Target {
	name, _, _ := strings.Cut(string(t), ":")
	return Target(name)
}

// FindLibraries looks for ONNX Runtime and for the op library, and returns the
// options with their paths. Rewrite does so before anything else; a program may
// do it before it opens a model. The error names what is missing, both where
// both are, and says what to do.
func (o Options) FindLibraries() (Options, error) {
	e := &o.Evaluation
	runtime, runtimeErr := e.Runtime, error(nil)
	if len(e.Worker) > 0 {
		runtime, runtimeErr = customop.FindRuntime(e.Runtime)
	} else { // this process may have loaded one from elsewhere already
		runtimeErr = customop.InitRuntime(e.Runtime)
	}
	library, libraryErr := customop.FindLibrary(customop.Options{Library: e.Library})
	switch {
	case runtimeErr != nil && libraryErr != nil:
		return o, fmt.Errorf("%w; and %w", runtimeErr, libraryErr)
	case runtimeErr != nil:
		return o, runtimeErr
	case libraryErr != nil:
		return o, libraryErr
	}
	e.Runtime, e.Library = runtime, library
	return o, nil
}
