package modelconfig

import "encoding/json"

// keys are the entries of a configuration, undecoded.
type keys map[string]json.RawMessage

// nested are the keys under which models of text and something else have the
// configuration of their language model.
var nested = []string{"text_config", "language_config", "llm_config"}

// readKeys reads an object. What stands in the language model's own part of it counts
// before what stands beside that.
func readKeys(data []byte) (keys, error) {
	var k keys
	if err := json.Unmarshal(data, &k); err != nil {
		return nil, err
	}
	for _, name := range nested {
		var inner keys
		if json.Unmarshal(k[name], &inner) != nil {
			continue
		}
		for key, value := range inner {
			k[key] = value
		}
	}
	return k, nil
}

// Number is a number that a file gives; Key is "" where it gives none.
type Number struct {
	Key   string
	Value float64
}

// Given says whether the file gives the number.
func (n Number) Given() bool { return n.Key != "" }

// number returns the first of some keys that holds a number.
func (k keys) number(names ...string) Number {
	for _, name := range names {
		var v *float64
		if json.Unmarshal(k[name], &v) == nil && v != nil {
			return Number{name, *v}
		}
	}
	return Number{}
}

// null says whether a key is there and holds null.
func (k keys) null(name string) bool { return string(k[name]) == "null" }

// object returns the object that a key holds, nil where it holds none.
func (k keys) object(name string) keys {
	var inner keys
	if json.Unmarshal(k[name], &inner) != nil {
		return nil
	}
	return inner
}

// text returns the text that a key holds, "" where it holds none.
func (k keys) text(name string) string {
	var s string
	if json.Unmarshal(k[name], &s) != nil {
		return ""
	}
	return s
}

// flag returns the switch that a key holds, and whether it holds one.
func (k keys) flag(name string) (on, given bool) {
	var b *bool
	if json.Unmarshal(k[name], &b) != nil || b == nil {
		return false, false
	}
	return *b, true
}

// numbers returns the list of numbers that a key holds, nil where it holds none.
func (k keys) numbers(name string) []float64 {
	var list []float64
	if json.Unmarshal(k[name], &list) != nil {
		return nil
	}
	return list
}
