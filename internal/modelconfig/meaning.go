package modelconfig

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tidwall/sjson"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Meaning is what a patched model is now, as far as a configuration can say it. Zero
// values leave what the configuration says.
type Meaning struct {
	Scaling string         // the method that scales the rotary layers
	Used    []rope.Setting // its parameters
	Context int64          // tokens that the model is meant for
	Window  int64          // tokens that every layer sees
}

// base is the rope_theta that the scaling works with, the zero value where it names none.
func (now Meaning) base() rope.Value {
	for _, s := range now.Used {
		if s.Name == "rope_theta" && s.From == rope.Given {
			return s.Value
		}
	}
	return rope.Value{}
}

// dictionary is the scaling in transformers' words, in JSON. What the method takes by itself
// is left out, as transformers takes the same.
func (now Meaning) dictionary(base rope.Value) (json.RawMessage, error) {
	d, err := sjson.SetBytes([]byte("{}"), "rope_type", now.Scaling)
	for _, s := range now.Used {
		own := s.From == rope.Default || s.From == rope.Computed || s.Name == "rope_theta" || slices.Contains(ours, s.Name)
		if err == nil && !own {
			var value []byte
			if value, err = json.Marshal(s.Value); err == nil {
				d, err = sjson.SetRawBytes(d, s.Name, value)
			}
		}
	}
	if err == nil && base.Kind() != rope.Absent {
		d, err = sjson.SetBytes(d, "rope_theta", base.Numbers()[0])
	}
	return d, err
}

// ours are parameters that transformers does not know.
var ours = []string{"length", "ramp", "base", "partial_rotary_factor"}

// Apply writes what the model is now into config.json. Warnings say what that file cannot express.
func (t *Text) Apply(now Meaning) (warnings []string, err error) {
	under := t.languageModel()
	set := func(key string, value any, wanted bool) {
		if err == nil && wanted {
			err = t.Set(under+key, value)
		}
	}
	set("max_position_embeddings", now.Context, now.Context > 0 && t.has(under+"max_position_embeddings"))
	set("sliding_window", now.Window, now.Window > 0)
	set("use_sliding_window", true, now.Window > 0 && t.has(under+"use_sliding_window"))
	if err != nil || now.Scaling == "" {
		return nil, err
	}
	return t.scale(under, now)
}

// languageModel is what stands before the keys of the language model: nothing, or the key
// that holds its own configuration.
func (t *Text) languageModel() string {
	for _, name := range nested {
		if t.has(name + ".max_position_embeddings") {
			return name + "."
		}
	}
	return ""
}

// scale writes a scaling as transformers reads it: in rope_parameters from its version 5 on,
// in rope_scaling with rope_theta beside it before.
func (t *Text) scale(under string, now Meaning) ([]string, error) {
	m, err := rope.Lookup(rope.ScalingAxis, now.Scaling)
	if err != nil {
		return nil, err
	}
	const baseAlone = "theta" // a method that is no rope_type
	if !m.HF && now.Scaling != baseAlone {
		return []string{fmt.Sprintf("it cannot express the scaling %s, and does not mention it", now.Scaling)}, nil
	}
	base, newer := now.base(), under+"rope_parameters"
	if !t.has(newer) {
		if base.Kind() != rope.Absent {
			err = t.Set(under+"rope_theta", base.Numbers()[0])
		}
		if err != nil || now.Scaling == baseAlone {
			return nil, err
		}
		d, err := now.dictionary(rope.Value{})
		if err != nil {
			return nil, err
		}
		return nil, t.replace(under+"rope_scaling", d)
	}
	if !t.has(newer+".rope_type") && !t.has(newer+".rope_theta") {
		return []string{"its rope_parameters are for types of layers, and are unchanged"}, nil
	}
	if base.Kind() == rope.Absent {
		if theta := t.number(newer + ".rope_theta"); theta > 0 {
			base = rope.Number(theta)
		}
	}
	if now.Scaling == baseAlone {
		now.Scaling = "default"
	}
	d, err := now.dictionary(base)
	if err != nil {
		return nil, err
	}
	return nil, t.replace(newer, d)
}

// Host is what ONNX Runtime GenAI must know of a patched model.
type Host struct {
	Library string // file name of the op library beside the model; "" where it needs none
	Context int64  // tokens that the model is meant for; 0 leaves the limits
	Growing bool   // its cache grows, so past and present are no shared buffers
}

// ApplyHost writes into genai_config.json what the host must know.
func (t *Text) ApplyHost(now Host) (err error) {
	set := func(key string, value any, wanted bool) {
		if err == nil && wanted {
			err = t.Set(key, value)
		}
	}
	const context, length = "model.context_length", "search.max_length"
	follows := t.number(length) == t.number(context) // GenAI's builder writes them equal
	set("model.decoder.session_options.custom_ops_library", now.Library, now.Library != "")
	set(context, now.Context, now.Context > 0)
	set(length, now.Context, now.Context > 0 && follows)
	set("search.past_present_share_buffer", false, now.Growing && string(t.Get("search.past_present_share_buffer")) != "false")
	return err
}
