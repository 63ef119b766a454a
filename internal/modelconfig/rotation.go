package modelconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Rotation is what the file says of one layer's frequencies.
type Rotation struct {
	None    bool   // the layer turns nothing, which NoneKey says
	NoneKey string // "" where the file says nothing of layers that do not turn

	Theta      Number
	Scaling    rope.Spec // without base and rotated share; rope.Spec{} where none is claimed
	ScalingKey string    // where the scaling stands, or its absence is said; "" where the file says neither
	Other      string    // what is asked for where no method is that: in words
	Unread     error     // why what stands there cannot be compared
}

// Rotation returns what the file says of a layer, by its number.
func (c Config) Rotation(layer int) (r Rotation) {
	r.None, r.NoneKey = c.nope(layer)
	kind := c.layerType(layer)
	r.Theta = c.theta(layer, kind)
	data, key := c.parameters(kind)
	r.ScalingKey = key
	if data != nil {
		if r.Scaling, r.Unread = scalingIn(data, key, kind); r.Unread == nil {
			r.Unread = c.refused(r.Scaling.Name, key)
		}
	}
	if r.Unread != nil || r.Scaling.Name != "" {
		return r
	}
	if older, other, key := c.keys.olderScaling(); key != "" {
		r.Other, r.ScalingKey = other, key
		if older != nil {
			r.Scaling, r.Unread = scalingIn(older, key, kind)
		}
	}
	return r
}

// onlyLists are the types of models that transformers scales by lists of factors alone.
var onlyLists = []string{"phi3"}

// refused says why transformers does not read a scaling of this type of models.
func (c Config) refused(scaling, key string) error {
	kind := c.keys.text("model_type")
	if scaling == "" || scaling == lists || !slices.Contains(onlyLists, kind) {
		return nil
	}
	return fmt.Errorf("%s asks for %s, and transformers reads only %s for %s", key, scaling, lists, kind)
}

// needsNewer says whether transformers before version 5 refuses a rope_type: it does not know proportional, and of
// models that it scales by lists it takes no attention_factor beside them.
func (c Config) needsNewer(name string) bool {
	return name == proportional || name == lists && slices.Contains(onlyLists, c.keys.text("model_type"))
}

// scalingIn returns the scaling of a type of layers in a dictionary, which stands under a key.
func scalingIn(data json.RawMessage, key, kind string) (rope.Spec, error) {
	byType, err := rope.ParseLayerRopeParameters(data)
	if err != nil {
		return rope.Spec{}, fmt.Errorf("%s: %w", key, err)
	}
	spec, ok := byType[kind]
	if !ok {
		spec, ok = byType[""]
	}
	if !ok {
		return rope.Spec{}, fmt.Errorf("%s has no parameters for a layer of type %q", key, short.Name(kind))
	}
	return scalingOf(spec), nil
}

// theta returns the base of a layer of some type.
func (c Config) theta(layer int, kind string) Number {
	for _, name := range []string{"layer_rope_theta", "rope_theta"} { // by layers
		if list := c.keys.numbers(name); layer < len(list) && list[layer] > 0 {
			return Number{name, list[layer]}
		}
	}
	parameters := c.keys.object("rope_parameters")
	if n := parameters.object(kind).number("rope_theta"); n.Given() {
		return Number{"rope_parameters." + kind + ".rope_theta", n.Value}
	}
	if n := parameters.number("rope_theta"); n.Given() {
		return Number{"rope_parameters.rope_theta", n.Value}
	}
	if kind == sliding {
		if n := c.keys.number("rope_local_base_freq", "local_rope_theta"); n.Given() {
			return n
		}
	}
	return c.keys.number("rope_theta", "global_rope_theta", "rotary_emb_base", "rotary_embedding_base")
}

// parameters returns the dictionary of a layer's scaling and the key that it stands
// under. Without one the key is that which says so.
func (c Config) parameters(kind string) (data json.RawMessage, key string) {
	names := []string{"rope_parameters", "rope_scaling"}
	if len(c.TypedParameters) == 0 && len(c.keys.object("rope_scaling")) > 0 {
		slices.Reverse(names) // transformers takes the older key where both are there
	}
	for _, name := range names {
		switch entries := c.keys.object(name); {
		case c.keys.null(name):
			key = name
		case entries == nil:
		case name == "rope_scaling" && kind == sliding && c.keys.number("rope_local_base_freq").Given():
			return nil, "rope_local_base_freq" // these layers are not scaled
		case c.FullScaled && kind == sliding && entries.object(kind) == nil:
			return nil, "model_type" // its code scales the other layers alone
		case name == "rope_scaling" && len(entries) == 0:
			key = name
		default:
			return c.completed(name, entries), name
		}
	}
	return nil, key
}

// completed adds to a dictionary what older configurations have beside it.
func (c Config) completed(name string, entries keys) json.RawMessage {
	kind := entries.text("rope_type") + entries.text("type")
	// Several positions for each token are no scaling: mrope_section stands beside any type, or is one of its own.
	entries = maps.Clone(entries)
	maps.DeleteFunc(entries, func(key string, _ json.RawMessage) bool { return strings.HasPrefix(key, "mrope_") })
	if kind == "mrope" {
		delete(entries, "type")
		entries["rope_type"] = json.RawMessage(`"default"`)
	}
	switch trained := c.trained(kind); {
	case trained == nil:
	case kind == "dynamic" || entries[original] == nil:
		entries[original] = trained
	}
	data, err := json.Marshal(entries)
	if err != nil {
		return c.keys[name]
	}
	return data
}

const original = "original_max_position_embeddings"

// trained is the trained length that transformers takes for a rope_type where its dictionary has none; for dynamic it
// looks into none.
func (c Config) trained(kind string) json.RawMessage {
	beside := c.keys[maxPositions]
	if own := c.keys[original]; own != nil {
		beside = own
	}
	switch kind {
	case "dynamic":
		return c.keys[maxPositions]
	case "yarn", "llama3", "longrope", "su":
		return beside
	}
	return nil
}

// scalingOf returns a spec without its base and the rotated share, which are claims
// of their own; rope.Spec{} where it scales nothing.
func scalingOf(spec rope.Spec) rope.Spec {
	spec.Params = maps.Clone(spec.Params)
	delete(spec.Params, "rope_theta")
	if !ownShare(spec.Name) {
		delete(spec.Params, partial)
	}
	if spec.Name == "theta" || spec.Name == "none" {
		return rope.Spec{}
	}
	return spec
}

// Context is what methods need to know of the model.
func (c Config) Context(layer int) rope.Context {
	return rope.Context{Length: int64(c.Positions().Value), Original: c.Original, Theta: c.Rotation(layer).Theta.Value}
}
