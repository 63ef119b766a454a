package rewrite_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// What is written is read back, and what a person writes by hand is read too.
func TestCacheScales(t *testing.T) {
	want := map[int]rewrite.CacheScales{
		3: {Key: []float32{0.1, 0.25, 3}, Value: []float32{1e-3}},
		0: {Key: []float32{0.0625}, Value: []float32{2}},
	}
	var file bytes.Buffer
	if err := rewrite.WriteCacheScales(&file, want); err != nil {
		t.Fatal(err)
	}
	if text := file.String(); text != `{"layers": [
  {"layer":0,"key":0.0625,"value":2},
  {"layer":3,"key":[0.1,0.25,3],"value":0.001}
]}
` {
		t.Errorf("written: %s", text)
	}
	got, err := rewrite.ParseCacheScales(file.Bytes())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read back: %v, %v", got, err)
	}
}

func TestCacheScalesRefused(t *testing.T) {
	for text, want := range map[string]string{
		``: "it is no file of scales: EOF",
		`{"layers": [{"layer": 0, "key": 1, "value": 1}]} 3`: "it goes on behind the scales",
		`{}`:                                                                                   "it has no scales; expected",
		`{"layers": []}`:                                                                       "it has no scales; expected",
		`{"layers": [{"key": 1, "value": 1}]}`:                                                 "entry 1 has no layer",
		`{"layers": [{"layer": 0, "key": 1}]}`:                                                 "layer 0 has no scale for its value",
		`{"layers": [{"layer": 4, "value": 1}]}`:                                               "layer 4 has no scale for its key",
		`{"layers": [{"layer": 0, "key": 0, "value": 1}]}`:                                     "layer 0 has the scale 0 for its key: expected a number above 0",
		`{"layers": [{"layer": 0, "key": [1, -2], "value": 1}]}`:                               "layer 0 has the scale -2 for its key: expected a number above 0",
		`{"layers": [{"layer": 0, "key": 1e60, "value": 1}]}`:                                  "layer 0 has the scale 1e+60 for its key: expected a number above 0 that float32 can hold",
		`{"layers": [{"layer": 0, "key": 1e-60, "value": 1}]}`:                                 "layer 0 has the scale 1e-60 for its key: expected a number above 0 that float32 can hold",
		`{"layers": [{"layer": 0, "key": [], "value": 1}]}`:                                    "a scale is a number, or a list",
		`{"layers": [{"layer": 0, "key": null, "value": 1}]}`:                                  "a scale is a number, or a list",
		`{"layers": [{"layer": 0, "key": "1", "value": 1}]}`:                                   "a scale is a number, or a list",
		`{"layers": [{"layer": 0, "key": NaN, "value": 1}]}`:                                   "it is no file of scales",
		`{"layers": [{"layer": 0, "keys": 1, "value": 1}]}`:                                    `unknown field "keys"`,
		`{"layers": [{"layer": 0, "key": 1, "value": 1}, {"layer": 0, "key": 1, "value": 1}]}`: "layer 0 is given twice",
	} {
		if _, err := rewrite.ParseCacheScales([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v lacks %q", text, err, want)
		}
	}
}
