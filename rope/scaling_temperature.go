package rope

import "errors"

// errOneToken refuses a logarithm that divides by zero.
var errOneToken = errors.New("original_max_position_embeddings must be 2 or more, because scores are divided by its logarithm")

// temperature is Llama 4's, in steps of floor_scale positions.
var temperature = Method{
	Axis:      ScalingAxis,
	Part:      TemperaturePart,
	Name:      "temperature",
	Doc:       "Llama 4's attention temperature: multiplies the scores of later queries, in steps. Frequencies are unchanged. Llama 4 uses it in its layers without rotation.",
	Formula:   "score·t(p), t(p) = 1 + attn_scale·ln(1 + ⌊(p + 1)/floor_scale⌋) for the query's position p",
	Source:    "Llama 4 in transformers (attn_temperature_tuning, attn_scale, floor_scale)",
	FineTuned: true,
	Params: []Param{
		{Name: "attn_scale", Kind: Real, Default: Number(0.1), Rule: aboveZero, Doc: "how fast the temperature grows"},
		{Name: "floor_scale", Kind: Whole, Counts: true, Default: Integer(8192), Rule: atLeastOne, Doc: "number of positions with the same temperature"},
	},
	apply: func(e edit) (Attention, []string, error) {
		return e.warm(Temperature{Offset: 1, Slope: e.number("attn_scale"), Start: 1, Group: e.integer("floor_scale")})
	},
}

// warm sets the temperature, in the numbers that the op takes.
func (e edit) warm(t Temperature) (Attention, []string, error) {
	if e.Temperature != (Temperature{}) {
		return Attention{}, nil, errors.New("the attention already has a temperature by the query's position; two cannot be combined")
	}
	t.Offset, t.Slope, t.Start = rounded(t.Offset), rounded(t.Slope), rounded(t.Start)
	if t.Slope == 0 || t.Slope > maxFloat32 || float64(float32(t.Group)) != float64(t.Group) {
		return Attention{}, nil, errors.New("the temperature's numbers do not fit into float32; give values nearer the defaults")
	}
	e.Temperature, e.Encoding.LengthDependent = t, e.own
	return e.Attention, nil, nil
}

const maxFloat32 = 1 << 127 * (2 - 0x1p-23)
