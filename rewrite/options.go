package rewrite

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/backend"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/feature"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/plan"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Options says how a model is evaluated and what its attention layers become. The zero value fuses attention
// and leaves the model's output unchanged.
type Options struct {
	Edits          []rope.Spec    // methods for the whole model: of an axis one, or several that set different parts of it (rope.Part). A scaling skips sliding-window layers whose frequencies differ from those of full-attention layers
	LayerEdits     []LayerEdit    // methods of single layers, or with AllLayers of all
	Layers         func(int) bool // which layers are rewritten, by their order in the graph; nil is all
	Context        rope.Context   // what methods need to know of the model
	Target         Target         // what layers become; empty is Ops
	AnyLength      bool           // ErrLimited if a layer is not known to be equal for any number of tokens
	AllowUnchanged bool           // no ErrPartial if layers stay unchanged; a cache of fixed capacity still needs every layer rewritten

	Numerics     Numerics
	Cache        Cache
	Documents    Documents
	LogitsPlaces string // name of an int64 input [batch] to add (LogitsPlacesInput): the token of each row whose logits are computed, the last by default; empty leaves the logits of every token

	Earlier    Earlier
	Source     Source
	Output     Output
	Evaluation Evaluation

	// PlanOnly stops before the model is changed: the report says what each layer would become. Its record
	// lacks the inputs that would be added.
	PlanOnly bool

	DumpSites string       // folder for layers that are delimited and unchanged, each as a model of its own with inputs, for bug reports; empty writes none
	Progress  func(string) // is told what is being done; may be nil
}

// Numerics says how rotated queries and keys are rounded.
type Numerics struct {
	// Angles says how a position times a frequency is rounded. "exact" keeps it in float64, "original" is as
	// the exporter has it, which mostly rounds it to float32. Empty is exact in layers whose frequencies a method
	// scales, because they have no exporter to equal, and original elsewhere; the target onnx leaves them to the
	// model's own nodes.
	Angles    string
	Precision string // of products: "exact" or "fast", as the op's attribute (docs/ops.md); empty is exact, or that of an earlier rewrite
}

// Cache says what the key-value cache becomes.
type Cache struct {
	Raw         bool   // keys are cached un-rotated and rotated when they are read; methods that need this set it
	Capacity    int64  // tokens that fixed-size buffers hold; 0 leaves the cache growing
	Ring        bool   // the buffers of layers with a window hold its tokens and the first keys alone; new tokens take the place of the oldest
	LengthInput string // name of the int32 input [batch] that goes with them; empty is CacheLengthInput
	Type        string // element type of keys and values: "float16" or "bfloat16" in place of float32, or "int8", whose scales are further inputs and outputs [batch, kv heads, tokens, 1]; empty leaves that of the model

	// Scales are the fixed scales of caches of int8 by layer, which Contrib needs and no other target takes
	// (ParseCacheScales). Every layer that is rewritten needs them.
	Scales map[int]CacheScales
}

// CacheScales are the scales of one layer's caches: a key or value is stored divided by its scale, as a whole
// number from -128 to 127. Each list has one scale, or one for each channel of each kv head, in this order.
type CacheScales struct{ Key, Value []float32 }

// Documents says where document masks take their ids from. The zero value is for other masks.
type Documents struct {
	Input     string     // name of an int64 input [batch, past + length] to add (DocumentsInput)
	Separator *Separator // counts the ids from the model's tokens instead
}

// Earlier says where the rewrite of an already rewritten model starts: by default from the original
// values, so methods never stack.
type Earlier struct {
	// Carried starts from the values in the graph: methods add to the earlier ones. A scaling with
	// base=carried asks for the same. It has no effect on other models.
	Carried bool

	// Restore undoes the methods of the earlier rewrite: the model is then what a rewrite
	// without a method gives. It is an error on other models, and together with a method.
	Restore bool
}

// Source says how the model and the files beside it are read.
type Source struct {
	Configuration  []byte // content of a config.json to use instead of the one beside the model; nil reads that one
	FollowLinks    bool   // a config.json that is a link out of its folder is read too
	WithoutWeights bool   // external data may be missing: the model is inspected and edited without it; files that exist must still be whole
}

// Output says what else the rewritten model has or lacks.
type Output struct {
	// OperatorSet is the version of the standard operators that the model is converted to first
	// (package onnx/opset), which a host or the op's fallback may need; 0 leaves it unchanged.
	// A model with a newer version is an error, and so is a node that cannot be converted.
	OperatorSet int64

	// NoFallback leaves out the fallback, the op in standard operators (package definition). It
	// takes a few kilobytes and lets the model run where the op library is missing.
	NoFallback bool
}

// Evaluation says how pieces of the model are run.
type Evaluation struct {
	Runtime   string    // path of the ONNX Runtime shared library; empty looks in the usual places
	Library   string    // path of the op library; empty looks in the usual places
	Worker    []string  // command, of a program that calls ServeIfWorker first, that evaluates; nil evaluates in this process, which a hostile graph may end
	ProveWith ProveWith // verifies layers in the place of Runtime; the zero value is none
	Memory    uint64    // bytes that this program's data and the worker (beyond its start) may each take; more is ErrMemory. With 0 the worker has 16 GiB, and layers that need more are unchanged
}

// ProveWith is the ONNX Runtime that the patched model is meant for. Layers are verified with it, because its kernels
// may compute something else of the same nodes than those that measure.
type ProveWith struct {
	Runtime  string // path of the shared library; empty is Evaluation.Runtime. One process loads one library, so another needs Evaluation.Worker
	Provider string // execution provider, by ONNX Runtime's short name such as CUDA or XNNPACK; empty is the CPU
}

// LayerEdit is a method for some layers only.
type LayerEdit struct {
	Spec   rope.Spec
	Layers func(int) bool // which layers, by their order in the graph; nil means by Type or Kind
	Type   string         // the layers of this type in config.json's layer_types
	Kind   LayerKind      // the layers that are measured to be of this kind
	Where  string         // the choice as the report says it, for example "layers 0-3"
}

// LayerKind is a kind of layer in a model in which only some layers have a
// sliding window.
type LayerKind string

const (
	FullAttention LayerKind = LayerKind(plan.FullAttention) // a query sees all keys before it
	Windowed      LayerKind = LayerKind(plan.Windowed)      // a query sees the nearest keys
)

func (e LayerEdit) String() string { return e.plan().String() }

func (e LayerEdit) plan() plan.LayerEdit {
	return plan.LayerEdit{Spec: e.Spec, Layers: e.Layers, Type: e.Type, Kind: plan.LayerKind(e.Kind), Where: e.Where}
}

// AllLayers gives a method to every layer. A scaling in Options.Edits skips sliding-window
// layers whose frequencies differ from those of the model's full-attention layers.
func AllLayers(spec rope.Spec) LayerEdit {
	return LayerEdit{Spec: spec, Layers: func(int) bool { return true }, Where: "all layers"}
}

// Separator lets the patched model count documents by itself: each begins or ends with a
// certain token. It is for models without a cache: with one, a call has only the new tokens
// and does not know the documents of the others.
type Separator struct {
	Token int64
	Ends  bool // the token is the last of a document instead of the first
}

func (s Separator) String() string { return feature.Separator(s).String() }

// The usual names of inputs that a rewrite adds.
const (
	DocumentsInput    = "document_ids"  // holds document ids
	CacheLengthInput  = "cache_length"  // says how many tokens a cache of fixed capacity holds in each row
	LogitsPlacesInput = "logits_places" // says which token of each row has its logits computed
)

// Target says what attention layers become.
type Target string

const (
	// Ops replaces a layer by the fused op. It is the default.
	Ops Target = "ops"
	// PlainONNX writes only standard ONNX operators, so the result runs without the op
	// library and in runtimes without functions. Methods that change only frequencies, gain
	// and visible keys go into the model's own nodes: other constants of its rotation, keys
	// hidden before its softmax. For other methods the fallback is inlined.
	PlainONNX Target = "onnx"
	// Contrib replaces a layer by ONNX Runtime's own com.microsoft.GroupQueryAttention, for
	// hosts that have a fast kernel for it and none for the op. It is for what that op can
	// compute, on rows without padding on the left. "contrib:onnxruntime=1.22" names the
	// oldest version that must run the result.
	Contrib Target = "contrib"
)

// Targets lists the targets, the default one first.
func Targets() (list []Target) {
	for _, name := range backend.Names() {
		list = append(list, Target(name))
	}
	return list
}

// Name is the target without its setting: Contrib for "contrib:onnxruntime=1.22".
func (t Target) Name() Target {
	name, _, _ := strings.Cut(string(t), ":")
	return Target(name)
}

// FindLibraries looks for ONNX Runtime and the op library, and returns the options with
// their paths. Rewrite does so first; a program may do it before it opens a model. The error
// names each library that is missing and says what to do.
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
	if e.ProveWith.Runtime != "" {
		if len(e.Worker) == 0 {
			return o, errors.New("ProveWith names another ONNX Runtime, and one process can load only one; name a Worker")
		}
		prover, err := customop.FindRuntime(e.ProveWith.Runtime)
		if err != nil {
			return o, fmt.Errorf("what layers are verified with (--prove-with; in Go Options.Evaluation.ProveWith) cannot be used: %w", err)
		}
		e.ProveWith.Runtime = prover
	}
	return o, nil
}
