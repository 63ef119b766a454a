package modelconfig

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Meaning is what a patched model is now, as far as a configuration can say it. Zero
// values leave what the configuration says.
type Meaning struct {
	Context int64   // tokens that the model is meant for
	Layers  []Layer // the attention layers of one of its graphs, in their order
}

// Layer is one attention layer of a patched model.
type Layer struct {
	Turns   bool     // it rotates query and key by position
	Gaps    bool     // some of its pairs do not turn (proportional)
	Base    float64  // rope_theta of its frequencies before Scaling; 0 where they follow none
	Scaling *Scaling // what a rewrite made of its frequencies; nil where they are the exporter's
	Window  int64    // tokens that it sees, 0 where it sees all and -1 where that is not known
	Masked  bool     // a rewrite gave it the window

	Was, Now *rope.Attention // what it computed in the export, and what it computes; nil where that is not known
}

// causal says whether a query sees no later keys, as far as that is known.
func (l Layer) causal() bool { return l.Now == nil || l.Now.Mask.Causal }

// Scaling is a method that scales frequencies.
type Scaling struct {
	Name string
	Used []rope.Setting // its parameters
}

func (s *Scaling) String() string {
	spec := rope.Spec{Axis: rope.ScalingAxis, Name: s.Name, Params: map[string]rope.Value{}}
	for _, x := range s.Used {
		if x.From == rope.Given {
			spec.Params[x.Name] = x.Value
		}
	}
	return spec.String()
}

// Apply writes what the model is now into config.json. Warnings say what that file cannot express.
// What is said of layers that nothing was done to stays true.
func (t *Text) Apply(now Meaning) (warnings []string, err error) {
	was := Parse("", t.Bytes())
	if was.Unread != nil {
		return []string{fmt.Sprintf("it cannot be read (%v), and is unchanged", was.why())}, nil
	}
	under := t.languageModel()
	key := under + maxPositions
	trained := t.Get(key)
	if now.Context > 0 && t.has(key) {
		if err := t.Set(key, now.Context); err != nil {
			return nil, err
		}
	}
	window, err := t.window(under, now)
	if err != nil {
		return nil, err
	}
	scaling, err := t.scale(under, now, was.Original)
	if err != nil {
		return nil, err
	}
	context, err := t.keepTrained(key, trained)
	return slices.Concat(context, window, scaling, unsaid(was, now)), err
}

const maxPositions = "max_position_embeddings"

// keepTrained takes back a new number of tokens where the rotation follows from it.
func (t *Text) keepTrained(key string, trained json.RawMessage) (warnings []string, err error) {
	before := t.clone()
	if trained == nil {
		return nil, nil
	}
	if err := before.replace(key, trained); err != nil {
		return nil, err
	}
	was, is := Parse("", before.Bytes()), Parse("", t.Bytes())
	seen := map[string]bool{} // layers of one type have one rotation
	for i := range max(was.Layers(), 1) {
		kind := was.layerType(i)
		if seen[kind] {
			continue
		}
		seen[kind] = true
		if a, b := was.Rotation(i), is.Rotation(i); !a.same(b) {
			*t = before
			return []string{fmt.Sprintf("its %s stays, because transformers takes the trained length of %s from it", maxPositions, a.Scaling.Name)}, nil
		}
	}
	return nil, nil
}

// unsaid warns of settings without a key.
func unsaid(c Config, now Meaning) (warnings []string) {
	for _, l := range now.Layers {
		if l.Now == nil {
			continue
		}
		for _, s := range c.Unsaid(*l.Now) {
			if w := fmt.Sprintf("it has no key for the %s (%s), so it does not mention it", s.What, s.Is); !slices.Contains(warnings, w) {
				warnings = append(warnings, w)
			}
		}
	}
	return warnings
}

// window writes the window that masks gave to layers.
func (t *Text) window(under string, now Meaning) (warnings []string, err error) {
	var widths []int64
	first := -1
	for i, l := range now.Layers {
		if l.Masked && !slices.Contains(widths, l.Window) {
			widths = append(widths, l.Window)
		}
		if l.Masked && first < 0 {
			first = i
		}
	}
	if len(widths) == 0 {
		return nil, nil
	}
	was := Parse("", t.Bytes())
	how := windows[was.keys.text("model_type")]
	no := []string{fmt.Sprintf("it cannot describe which layers now have a window of %d tokens, so it does not mention it", widths[0])}
	if how == 0 {
		return []string{fmt.Sprintf("transformers reads no window for its model_type, so it does not mention the window of %d tokens", widths[0])}, nil
	}
	tried := t.clone()
	set := func(key string, value any) {
		if err == nil {
			err = tried.Set(under+key, value)
		}
	}
	number := widths[0]
	if !now.Layers[first].causal() {
		number-- // Window.Spans
	}
	set("sliding_window", number)
	if how == upperLayers {
		set("use_sliding_window", true)
		switch {
		case !t.has(under + "layer_types"):
			set("max_window_layers", first)
		case len(now.Layers) == len(was.LayerTypes):
			types := make([]string, len(now.Layers))
			for i, l := range now.Layers {
				types[i] = either(l.Window > 0, sliding, full)
			}
			set("layer_types", types)
		}
	}
	if err != nil {
		return nil, err
	}
	told := Parse("", tried.Bytes())
	of := told.layersOf(len(now.Layers), func(n int) any { return told.Window(n) })
	for i, l := range now.Layers {
		n, known := of(i)
		if w := told.Window(n); l.Window >= 0 && (!known || w.Key == "" || w.Unread != "" || !slices.Contains(w.Spans(l.causal()), l.Window)) {
			return no, nil
		}
	}
	*t = tried
	return nil, nil
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

// clone is a text that can be changed alone.
func (t *Text) clone() Text {
	c := *t
	c.Changes = slices.Clone(t.Changes)
	return c
}

// Host is what ONNX Runtime GenAI must know of a patched model.
type Host struct {
	Library string // file name of the op library beside the model; "" where it needs none
	Context int64  // tokens that the model is meant for; 0 leaves the limits
	Growing bool   // its cache grows, so past and present are no shared buffers
}

// customOps is the key of the one library with ops that ONNX Runtime GenAI loads.
const customOps = "model.decoder.session_options.custom_ops_library"

// CustomOps is the library with ops that genai_config.json names, "" where it names none.
func (t *Text) CustomOps() string { return keys{"": t.Get(customOps)}.text("") }

// Decoder is the decoder's file that genai_config.json names, from its own folder; "" where it names none.
func (t *Text) Decoder() string { return keys{"": t.Get("model.decoder.filename")}.text("") }

// ApplyHost writes into genai_config.json what the host must know. A library of the model's own
// stays: own is its name, and the host then loads that one in place of now.Library.
func (t *Text) ApplyHost(now Host) (own string, err error) {
	set := func(key string, value any, wanted bool) {
		if err == nil && wanted {
			err = t.Set(key, value)
		}
	}
	const context, length = "model.context_length", "search.max_length"
	follows := t.number(length) == t.number(context) // GenAI's builder writes them equal
	if is := t.CustomOps(); now.Library != "" && is != "" && path.Base(is) != now.Library {
		own = is
	}
	set(customOps, now.Library, now.Library != "" && own == "")
	set(context, now.Context, now.Context > 0)
	set(length, now.Context, now.Context > 0 && follows)
	set("search.past_present_share_buffer", false, now.Growing && string(t.Get("search.past_present_share_buffer")) != "false")
	return own, err
}
