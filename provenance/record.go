package provenance

import (
	"strings"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Key is the key of the record in the model's metadata (metadata_props).
const Key = "rope_rewrite"

// Version is the newest version of the schema that this package reads, and the one
// that it writes.
const Version = 2

// Record says what a rewrite did to a model.
type Record struct {
	Version int    `json:"version"`           // of this schema
	Tool    string `json:"tool"`              // version of rope-rewrite that wrote the model
	Target  string `json:"target"`            // "ops", "onnx" or "contrib", which a setting may follow: what layers became
	OpSpec  int64  `json:"op_spec,omitempty"` // specification of the op that the model's nodes need; 0 without nodes
	Graph   string `json:"graph_sha256"`      // of the graph before any rewrite (onnx.Model.Digest), in hexadecimal digits

	// Configuration is what methods used of the original's config.json.
	Configuration Configuration `json:"configuration,omitzero"`

	Edits    []Edit  `json:"edits"`     // empty when no method was given
	Sites    []Site  `json:"sites"`     // attention layers that were rewritten; those of one value together
	Kept     []Kept  `json:"kept"`      // attention layers that are unchanged
	MaxError float64 `json:"max_error"` // largest error of all proofs, absolute, of any element

	ProvenWith *Runtime `json:"proven_with,omitempty"` // the runtime that proofs were made with, where one was named for it

	AddedInputs  []string `json:"added_inputs,omitempty"`  // graph inputs that the original does not have
	AddedOutputs []string `json:"added_outputs,omitempty"` // graph outputs likewise
	Buffers      []Buffer `json:"buffers,omitempty"`       // values of the cache whose shape or type was changed
}

// Runtime is an ONNX Runtime.
type Runtime struct {
	Version  string `json:"version"`            // as it says itself
	Provider string `json:"provider,omitempty"` // its execution provider; "" is the CPU
}

// String returns the runtime as people name it: "ONNX Runtime 1.31.1 on CUDA".
func (r Runtime) String() string {
	name := "ONNX Runtime " + r.Version
	if r.Provider != "" {
		name += " on " + r.Provider
	}
	return name
}

// Configuration is what is known of the model beside its graph, and what it is meant for.
type Configuration struct {
	Trained int64   `json:"max_position_embeddings,omitempty"` // tokens
	Theta   float64 `json:"rope_theta,omitempty"`
	Context int64   `json:"context,omitempty"` // tokens that methods were asked for (--context); 0 if none were given
}

// Edit is one change that was asked for.
type Edit struct {
	What     string         `json:"what"`               // "scaling", "positions", "mask", "documents", "kv", "logits", "cache", "precision", "opset", "angles" or "fallback"
	Given    string         `json:"given"`              // as it was asked for, for example "yarn:factor=4"
	Layers   []int          `json:"layers"`             // that have it
	Settings []rope.Setting `json:"settings,omitempty"` // every parameter that it used
	Note     string         `json:"note,omitempty"`     // why some layers do not have it
}

// String returns the edit as it was asked for: "scaling yarn:factor=4".
func (e Edit) String() string { return e.What + " " + e.Given }

// Spec returns the method with the parameters that were given and those that it took from the
// original's configuration, so it gives the same without that configuration.
func (e Edit) Spec() string {
	name, _, _ := strings.Cut(e.Given, ":")
	var list []string
	for _, s := range e.Settings {
		switch s.From {
		case rope.Given, rope.Configuration:
			list = append(list, s.Name+"="+s.Value.String())
		}
	}
	if len(list) == 0 {
		return name
	}
	return name + ":" + strings.Join(list, ",")
}

// Setting returns the parameter of that name, or the zero value if there is
// none.
func (e Edit) Setting(name string) rope.Value {
	for _, s := range e.Settings {
		if s.Name == name {
			return s.Value
		}
	}
	return rope.Value{}
}

// Site is one or several attention layers with the same value and the same verification.
type Site struct {
	Layers []int    `json:"layers"`          // the places among the model's attention layers, in the graph's order
	Nodes  []string `json:"nodes"`           // of each layer: the node of the original that it was found at
	Ops    []string `json:"ops,omitempty"`   // of each layer: the name of the op's node; nil where the target is another than ops
	Scope  string   `json:"scope,omitempty"` // the graph inside a node that they stand in; "" is the model's own

	Op            string         `json:"op"`              // what the exporter wrote the attention's core as
	Original      rope.Attention `json:"original"`        // what was measured, before any edit
	Cache         string         `json:"cache"`           // "none", "growing" or "counted"
	Normed        [2]bool        `json:"normed,omitzero"` // of query and key: a norm follows the rotation
	AfterRotation string         `json:"after_rotation,omitempty"`
	Unknown       float64        `json:"frequencies_known_to,omitempty"` // relative error that the frequencies may have
	RotationOnly  bool           `json:"rotation_only,omitempty"`        // the attention could not be measured, for Reason
	Reason        string         `json:"reason,omitempty"`
	Latent        bool           `json:"latent,omitempty"` // keys and values are made of a cache of latent states

	// Form says how the layer is written: "" as the op, "own nodes" of the model, "inlined" as
	// the op's body, "GroupQueryAttention". Computes is what it computes where neither the op nor a measurement
	// tells it.
	Form     string          `json:"form,omitempty"`
	Computes *rope.Attention `json:"computes,omitempty"`
	Proof    *Proof          `json:"proof,omitempty"`

	// Positions is about positions that the graph computes itself: ByIndex, or why they are not the
	// index of each token plus one number for its row. It is "" where the graph does not compute them.
	Positions string `json:"positions,omitempty"`

	// PositionIDs are of each layer the value with positions that the op reads when no
	// method changes them; nil where it still reads it.
	PositionIDs []string `json:"position_ids,omitempty"`
}

// ByIndex says that positions are the index of each token plus one number for its row.
const ByIndex = "by index"

// Proof says how the op compared with the original on random inputs. Errors are
// the largest absolute ones of any element.
type Proof struct {
	MaxError      float64 `json:"max_error"`      // of the op against the original in float64
	OriginalError float64 `json:"original_error"` // of the original's own float32
	Cases         int     `json:"cases"`

	// Where frequencies are computed anew in each call: how far the op's are off from the formula,
	// relative to themselves, and how far the original's are. 0 for others.
	FrequencyError         float64 `json:"frequency_error,omitzero"`
	OriginalFrequencyError float64 `json:"original_frequency_error,omitzero"`

	// Skipped counts the cases with several rows that the original itself does
	// not run, for the reason SkippedWhy. Each was run with one row instead, and
	// with several rows against float64 alone.
	Skipped    int    `json:"skipped"`
	SkippedWhy string `json:"skipped_why"`

	// LongestCall is the largest number of new tokens with which the original runs, where a
	// case had more; it was run with so many. SkippedWhy says why. 0 for others.
	LongestCall int64 `json:"longest_call,omitzero"`

	// PaddedDiffer says that queries of padded tokens that see no key get
	// something else from the op than from the original. The layer is then
	// rewritten only if no other token was seen to depend on them.
	PaddedDiffer bool `json:"padded_differ"`

	// Exact says for which calls the mask and the positions were compared without sampling.
	Exact Exact `json:"exact,omitzero"`
}

// Exact says for which calls what decides who sees whom was compared without sampling, beside the random inputs.
// The zero value says that none was.
type Exact struct {
	// Width: the mask was compared in every call of up to so many tokens, cached and new ones, with every padding.
	Width int64 `json:"width,omitzero"`

	// Rows is in how many rows of a batch that was; each has a padding of its own.
	Rows int64 `json:"rows,omitzero"`

	// AnyLength: by the formulas that the graph computes, mask and positions are the same in every call, of any number
	// of tokens, cached tokens and rows.
	AnyLength bool `json:"any_length,omitzero"`

	// Tokens: otherwise they are known for calls of up to so many tokens, and a sample of longer ones was compared.
	Tokens int64 `json:"tokens,omitzero"`

	// Why says what of the graph is no such formula.
	Why string `json:"why,omitempty"`

	// Calls is in how many calls of up to eight tokens the positions were compared by which query and key are
	// rotated: all there are.
	Calls int64 `json:"calls,omitzero"`
}

// Kept is one attention layer that is unchanged.
type Kept struct {
	Layer  int    `json:"layer"`
	Node   string `json:"node"`
	Scope  string `json:"scope,omitempty"`
	Op     string `json:"op"`
	Reason string `json:"reason"`
}

// Buffer names values of the key-value cache that got a fixed capacity or another element type, with
// the size that their axis of tokens had before.
type Buffer struct {
	Param  string   `json:"param,omitempty"` // its name; "" where it was a number or nothing
	Value  int64    `json:"value,omitempty"`
	Type   string   `json:"type,omitempty"` // their element type before, where that was changed: float, float16 or bfloat16
	Values []string `json:"values"`
}

// TypeOf returns the element type that they had before, and whether that was changed.
func (b Buffer) TypeOf() (onnx.DataType, bool) {
	for _, t := range []onnx.DataType{onnx.Float, onnx.Float16, onnx.BFloat16} {
		if t.String() == b.Type {
			return t, true
		}
	}
	return 0, false
}

// Dim returns the size as a dimension of a shape.
func (b Buffer) Dim() onnx.Dim { return onnx.Dim{Param: b.Param, Value: b.Value} }
