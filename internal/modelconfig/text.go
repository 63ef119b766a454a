package modelconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// Text is a configuration whose values can be changed. What is not changed stays as it
// stands, unknown keys and the order of keys among it.
type Text struct {
	Changes []Change // in order; of each key the first Before and the last After

	text   []byte
	end    []byte // spaces and lines behind it
	indent string // where the file is indented as JSON writers do it; "" leaves new keys in a line of their own
}

// Change is one key that got another value.
type Change struct {
	Key    string          `json:"key"`              // with those above it: "model.context_length"
	Before json.RawMessage `json:"before,omitempty"` // nil where the key was not there
	After  json.RawMessage `json:"after,omitempty"`  // nil where it is gone
}

// String is the change in a line: "max_position_embeddings 8192 → 16384".
func (c Change) String() string {
	text := func(value json.RawMessage) string {
		var b bytes.Buffer
		if value == nil || json.Compact(&b, value) != nil {
			return "(none)"
		}
		return strings.ReplaceAll(b.String(), `,"`, `, "`) // lines are broken at spaces
	}
	if c.Before == nil {
		return c.Key + " " + text(c.After)
	}
	return c.Key + " " + text(c.Before) + " → " + text(c.After)
}

// NewText reads a configuration; the error says why it is none.
func NewText(data []byte) (*Text, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, fmt.Errorf("it is not a configuration in JSON: %w", err)
	}
	text := bytes.TrimRight(data, " \t\r\n")
	t := &Text{text: text, end: data[len(text):]}
	for _, indent := range []string{"  ", "    ", "\t"} {
		if bytes.Equal(indented(text, indent), text) {
			t.indent = indent
		}
	}
	return t, nil
}

// indented writes JSON as writers do it: a line for each key and each element.
func indented(data []byte, indent string) []byte {
	var b bytes.Buffer
	if json.Indent(&b, data, "", indent) != nil {
		return data
	}
	return b.Bytes()
}

// Get returns the value of a key, nil where there is none. Keys inside others are written
// with dots between.
func (t *Text) Get(key string) json.RawMessage {
	if r := gjson.GetBytes(t.text, key); r.Exists() {
		return json.RawMessage(r.Raw)
	}
	return nil
}

// has says whether a key is there and holds something.
func (t *Text) has(key string) bool {
	v := t.Get(key)
	return v != nil && string(v) != "null"
}

// number returns the number that a key holds, 0 where it holds none.
func (t *Text) number(key string) float64 {
	var n float64
	if json.Unmarshal(t.Get(key), &n) != nil {
		return 0
	}
	return n
}

// Set gives a key a value that is encoded as JSON.
func (t *Text) Set(key string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return t.replace(key, raw)
}

// replace gives a key a value in JSON; nil takes it out.
func (t *Text) replace(key string, value json.RawMessage) error {
	before := bytes.Clone(t.Get(key))
	if same(before, value) {
		return nil
	}
	var err error
	if value == nil {
		t.text, err = sjson.DeleteBytes(t.text, key)
	} else {
		t.text, err = sjson.SetRawBytes(t.text, key, value)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	if t.indent != "" {
		t.text = indented(t.text, t.indent)
	}
	for i := range t.Changes {
		if c := &t.Changes[i]; c.Key == key {
			if c.After = value; same(c.Before, value) {
				t.Changes = append(t.Changes[:i], t.Changes[i+1:]...)
			}
			return nil
		}
	}
	t.Changes = append(t.Changes, Change{key, before, value})
	return nil
}

// same says whether two values are equal but for spaces; nil is no value.
func same(a, b json.RawMessage) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// Undo takes changes back, the last one first. A key that holds something else than the change
// gave it was changed by somebody since, and stays. The changes are then none of this Text's.
func (t *Text) Undo(changes []Change) error {
	for i := len(changes) - 1; i >= 0; i-- {
		if c := changes[i]; same(t.Get(c.Key), c.After) {
			if err := t.replace(c.Key, c.Before); err != nil {
				return err
			}
		}
	}
	t.Changes = nil
	return nil
}

// Bytes is the configuration as it is now.
func (t *Text) Bytes() []byte { return slices.Concat(t.text, t.end) }
