package modelconfig

import "testing"

// A length that the model had becomes the new one. Larger lengths are no limits, and of others the warning says
// that they stay.
func TestApplyTokenizer(t *testing.T) {
	for name, c := range map[string]struct{ config, changed, warning string }{
		"the trained length": {`{"a": 1, "model_max_length": 64}`, `{"a": 1, "model_max_length": 256}`, ""},
		"the scaled length":  {`{"model_max_length": 128}`, `{"model_max_length": 256}`, ""},
		"no limit":           {`{"model_max_length": 1000000000000000019884624838656}`, "", ""},
		"null":               {`{"model_max_length": null}`, "", ""},
		"no length":          {`{}`, "", ""},
		"not a number":       {`{"model_max_length": "many"}`, "", ""},
		"another length": {`{"model_max_length": 32}`, "",
			"model_max_length is 32, which is not the length that the model was trained for, and is left unchanged; the model is meant for 256 tokens now"},
		"the new length": {`{"model_max_length": 256}`, "", ""},
		"a larger one":   {`{"model_max_length": 512}`, "", ""},
	} {
		text, err := NewText([]byte(c.config))
		if err != nil {
			t.Fatal(err)
		}
		warning, err := text.ApplyTokenizer(256, 64, 128)
		if err != nil || warning != c.warning {
			t.Errorf("%s: warning %q, %v; want %q", name, warning, err, c.warning)
		}
		want := c.changed
		if want == "" {
			want = c.config
		}
		if got := string(text.Bytes()); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
