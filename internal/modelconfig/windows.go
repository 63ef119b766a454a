package modelconfig

// windowed says how configurations of a type of models give layers a window.
type windowed int

const (
	everyLayer  windowed = iota + 1 // sliding_window is for all layers
	upperLayers                     // use_sliding_window switches it on, from layer max_window_layers on or by layer_types
	byTypes                         // layer_types say which layers have it, and more than that
)

// windows says by model_type which configurations of transformers have a window, and how. Others that interleaves
// names ignore the key. Types that neither names may have code of their own.
var windows = map[string]windowed{
	"mistral": everyLayer, "mixtral": everyLayer, "phi3": everyLayer, "starcoder2": everyLayer,
	"qwen2": upperLayers, "qwen3": upperLayers,
	"gemma2": byTypes, "gemma3_text": byTypes, "cohere2": byTypes, "gpt_oss": byTypes, "olmo3": byTypes, "vaultgemma": byTypes,
}

// ignoresWindow says whether transformers passes over sliding_window.
func (c Config) ignoresWindow() bool {
	kind := c.keys.text("model_type")
	_, known := interleaves[kind]
	return known && windows[kind] == 0
}
