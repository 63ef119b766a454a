package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/lm/chat/jinja"
)

// Message is one message of a conversation. Its JSON is the one of OpenAI's API:
//
//	{"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function",
//	 "function": {"name": "rain", "arguments": "{\"place\": \"Oslo\"}"}}]}
//
// A message that was read writes the same values in the same order. A template sees
// its keys in that order, too.
type Message struct {
	Role    string // "system", "user", "assistant", "tool" or what the template knows
	Content string
	// Extra holds what else a template reads: tool_calls, name, tool_call_id,
	// reasoning_content. A content here stands in for Content: nil is Python's None,
	// and a list holds parts. Values are those of Options. UnmarshalJSON makes a
	// string of a text, nil of null, and a json.RawMessage of all else. Templates read
	// thoughts as reasoning_content, reasoning or thinking, each by one of these names;
	// as in transformers, none stands in for another.
	//
	// The arguments of a function in tool_calls are a JSON text in OpenAI's form, and
	// an object in templates. Render reads that text, as vLLM and the server of
	// transformers do; apply_chat_template does not. An empty text is an empty object.
	Extra map[string]any

	keys []string // of a message that was read, in their order
}

// names are the keys of a message: in the order in which they were read, else role,
// content and the rest by name.
func (m Message) names() []string {
	names := slices.Clone(m.keys)
	if names == nil {
		names = []string{"role", "content"}
	}
	for _, name := range append([]string{"role", "content"}, slices.Sorted(maps.Keys(m.Extra))...) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool {
		_, ok := m.get(name)
		return !ok
	})
}

func (m Message) get(name string) (value any, ok bool) {
	if value, ok = m.Extra[name]; ok {
		return value, true
	}
	switch name {
	case "role":
		return m.Role, true
	case "content": // a message that was read may have none
		return m.Content, m.Content != "" || m.keys == nil || slices.Contains(m.keys, "content")
	}
	return nil, false
}

// MarshalJSON writes the message as OpenAI's API has it.
func (m Message) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range m.names() {
		v, _ := m.get(name)
		key, err := write(name)
		if err != nil {
			return nil, fmt.Errorf("a key of the message: %w", err)
		}
		data, err := write(v)
		if err != nil {
			return nil, fmt.Errorf("the message's %s: %w", name, err)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(data)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads a message of OpenAI's API. It keeps every key.
func (m *Message) UnmarshalJSON(data []byte) error {
	if _, err := jinja.FromJSON(data); err != nil {
		return fmt.Errorf("a message that no template can take: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return errors.New("a message is no JSON object")
	}
	read := Message{keys: []string{}}
	for d.More() {
		name, v, err := readField(d)
		if err != nil {
			return err
		}
		if slices.Contains(read.keys, name) {
			return fmt.Errorf("a message has the key %q twice", short.Name(name))
		}
		read.keys = append(read.keys, name)
		text, isText := v.(string)
		switch {
		case name == "role" && isText:
			read.Role = text
		case name == "role":
			return errors.New("the role of a message is no text")
		case name == "content" && isText:
			read.Content = text
		default:
			if read.Extra == nil {
				read.Extra = map[string]any{}
			}
			read.Extra[name] = v
		}
	}
	if !slices.Contains(read.keys, "role") {
		return errors.New("a message has no role")
	}
	*m = read
	return nil
}

// readField reads a key and its value: nil, a string or a json.RawMessage.
func readField(d *json.Decoder) (name string, value any, err error) {
	key, err := d.Token()
	if err != nil {
		return "", nil, err
	}
	name = key.(string)
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return "", nil, err
	}
	switch raw[0] {
	case 'n':
		return name, nil, nil
	case '"':
		var text string
		err := json.Unmarshal(raw, &text)
		return name, text, err
	}
	return name, raw, nil
}

// value is what a message is in a template.
func (m Message) value() (*jinja.Dict, error) {
	d := &jinja.Dict{}
	for _, name := range m.names() {
		given, _ := m.get(name)
		v, err := value(given)
		if err == nil && name == "tool_calls" {
			err = readArguments(v)
		}
		if err != nil {
			return nil, fmt.Errorf("its %s: %w", name, err)
		}
		d.Set(name, v)
	}
	return d, nil
}

// readArguments makes objects of the arguments of functions that are JSON texts.
func readArguments(calls any) error {
	list, _ := calls.(jinja.List)
	for i, one := range list {
		call, _ := one.(*jinja.Dict)
		if call == nil {
			continue
		}
		v, _ := call.Get("function")
		function, _ := v.(*jinja.Dict)
		if function == nil {
			continue
		}
		arguments, _ := function.Get("arguments")
		text, ok := arguments.(string)
		switch {
		case !ok:
			continue
		case text == "":
			text = "{}"
		}
		read, err := jinja.FromJSON([]byte(text))
		if err != nil {
			return fmt.Errorf("the arguments of call %d are not the JSON that they should be: %w", i+1, err)
		}
		function.Set("arguments", read)
	}
	return nil
}
