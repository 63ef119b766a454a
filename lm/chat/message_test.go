package chat

import (
	"encoding/json"
	"strings"
	"testing"
)

// Messages of OpenAI's API are read and written again, with the order of their keys.
func TestMessageJSON(t *testing.T) {
	for _, text := range []string{
		`{"role":"user","content":"Hi <b> & é"}`,
		`{"content":"first","role":"system"}`,
		`{"role":"user","content":""}`,
		`{"role":"user","name":"Ann","content":[{"type":"text","text":"What is it?"},{"type":"image_url","image_url":{"url":"data:,","detail":"low"}}]}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"rain","arguments":"{\"b\":1, \"a\":2.0}"}}]}`,
		`{"role":"assistant","tool_calls":[{"function":{"arguments":{"z":1,"a":2},"name":"f"}}]}`,
		`{"role":"tool","tool_call_id":"call_1","content":"3 mm"}`,
		`{"role":"assistant","reasoning_content":"hm","content":"So.","refusal":null,"annotations":[],"audio":{"id":"x"},"n":1e2,"ok":true}`,
		`{"role":"user","content":{"not":"OpenAI's"}}`,
	} {
		var m Message
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if b, err := m.MarshalJSON(); err != nil || string(b) != text {
			t.Errorf("%s became %s, %v", text, b, err)
		}
	}
	m := Message{Role: "user", Content: "x", Extra: map[string]any{"name": "Ann", "a": []int{1}}}
	if b, err := json.Marshal([]Message{m}); err != nil || string(b) != `[{"role":"user","content":"x","a":[1],"name":"Ann"}]` {
		t.Errorf("%s, %v", b, err)
	}
}

// What was read may be changed; what is added follows.
func TestMessageChanged(t *testing.T) {
	var m Message
	if err := json.Unmarshal([]byte(`{"name":"Ann","role":"user","tool_calls":[]}`), &m); err != nil {
		t.Fatal(err)
	}
	m.Content = "x"
	delete(m.Extra, "name")
	m.Extra["b"] = 1
	if b, err := json.Marshal(m); err != nil || string(b) != `{"role":"user","tool_calls":[],"content":"x","b":1}` {
		t.Errorf("%s, %v", b, err)
	}
}

func TestMessageRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                                    "no JSON object",
		`null`:                                  "no JSON object",
		`"user"`:                                "no JSON object",
		`{}`:                                    "has no role",
		`{"role":null}`:                         "is no text",
		`{"role":"a","content":"b","role":"c"}`: "twice",
		`{"role":"a","content":"\ud83d!"}`:      "half of a character",
		"{\"role\":\"a\",\"x\":[\"\xff\"]}":     "not UTF-8",
		`{"role":"a","n":99999999999999999999}`: "64 bits",
	} {
		var all []Message
		err := json.Unmarshal([]byte("["+text+"]"), &all)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, where %q was expected", text, err, want)
		}
	}
	for _, m := range []Message{{Role: "\xff"}, {Content: "\xff"}, {Extra: map[string]any{"x": []any{"\xff"}}}, {Extra: map[string]any{"\xff": 1}}, {Extra: map[string]any{"f": func() {}}}} {
		if b, err := json.Marshal(m); err == nil {
			t.Errorf("%q was written as %s", m, b)
		}
	}
}

// A template sees what was read: None, an object for the text of arguments, and the
// keys in their order.
func TestMessageInTemplate(t *testing.T) {
	template, err := Parse("{% for m in messages %}{{ m }}\n{% endfor %}", nil)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`{"content":"x","role":"user"}`:     `{'content': 'x', 'role': 'user'}`,
		`{"role":"user","content":null}`:    `{'role': 'user', 'content': None}`,
		`{"role":"assistant"}`:              `{'role': 'assistant'}`,
		`{"role":"user","content":["a",1]}`: `{'role': 'user', 'content': ['a', 1]}`,
		`{"role":"a","content":"","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{\"b\": 1, \"a\": [2.0]}"}},{"function":{"arguments":"","name":"g"}}]}`: `` +
			`{'role': 'a', 'content': '', 'tool_calls': [{'id': '1', 'function': {'name': 'f', 'arguments': {'b': 1, 'a': [2.0]}}}, {'function': {'arguments': {}, 'name': 'g'}}]}`,
	} {
		var m Message
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		if got, err := template.Render([]Message{m}, Options{}); err != nil || got != want+"\n" {
			t.Errorf("%s: %s, %v; expected %s", text, got, err, want)
		}
	}
	bad := Message{Role: "a", Extra: map[string]any{"tool_calls": json.RawMessage(`[{"function":{"arguments":"{"}}]`)}}
	if _, err := template.Render([]Message{{Role: "u"}, bad}, Options{}); err == nil || !strings.Contains(err.Error(), "message 2: its tool_calls: the arguments of call 1") {
		t.Error(err)
	}
}
