package main

import (
	"testing"
)

// Calls are read in each model's way of writing, and what is no call of a known function stays text.
func TestCalls(t *testing.T) {
	type want struct{ name, arguments string }
	for _, c := range []struct {
		text  string
		shown string
		calls []want
	}{
		{"<tool_call>\n{\"name\": \"rain\", \"arguments\": {\"at\": \"Oslo\"}}\n</tool_call>", "", []want{{"rain", `{"at":"Oslo"}`}}},
		{"I look.\n<tool_call>{\"name\": \"rain\", \"arguments\": {}}</tool_call>\n<tool_call>{\"name\": \"wind\"}", "I look.\n", []want{{"rain", "{}"}, {"wind", "{}"}}},
		{"\n\n<tool_call>{\"name\": \"rain\", \"arguments\": \"{\\\"a\\\": 1}\"}</tool_call>", "", []want{{"rain", `{"a":1}`}}},
		{`{"name": "rain", "parameters": {"at": "</tool_call>"}}`, "", []want{{"rain", `{"at":"</tool_call>"}`}}},
		{`<|python_tag|>{"name": "rain", "parameters": {}}; {"name": "wind", "parameters": {"at": "Rome"}}`, "", []want{{"rain", "{}"}, {"wind", `{"at":"Rome"}`}}},
		{`[TOOL_CALLS] [{"name": "rain", "arguments": {"at": "Oslo"}}, {"name": "wind", "arguments": {}}]`, "", []want{{"rain", `{"at":"Oslo"}`}, {"wind", "{}"}}},
		{`[TOOL_CALLS]rain[ARGS]{"at": "Oslo"}[TOOL_CALLS]wind[CALL_ID]abc[ARGS]{}`, "", []want{{"rain", `{"at":"Oslo"}`}, {"wind", "{}"}}},
		{"It rains.", "It rains.", nil},
		{"  It <tool> rains {now}", "  It <tool> rains {now}", nil},
		{`{"answer": 4}`, `{"answer": 4}`, nil},
		{`{"name": "snow", "parameters": {}}`, `{"name": "snow", "parameters": {}}`, nil},
		{`<tool_call>{"name": "rain", "arguments": {"at": "Os`, `<tool_call>{"name": "rain", "arguments": {"at": "Os`, nil},
		{`<tool_call>{"name": "rain", "arguments": [1]}</tool_call>`, `<tool_call>{"name": "rain", "arguments": [1]}</tool_call>`, nil},
		{`<tool_call>{"name": "rain", "arguments": {}}</tool_call> and more`, `<tool_call>{"name": "rain", "arguments": {}}</tool_call> and more`, nil},
		{"[TOOL_CALLS]", "[TOOL_CALLS]", nil},
		{"[TOOL_CALLS]rain", "[TOOL_CALLS]rain", nil},
		{"a <tool_cal", "a <tool_cal", nil},
		{" ", " ", nil},
		{"", "", nil},
	} {
		// However the text is cut, the result is the same.
		for size := 1; size <= len(c.text)+1; size++ {
			f := toolbox{names: map[string]bool{"rain": true, "wind": true}}.filter()
			shown := ""
			for at := 0; at < len(c.text); at += size {
				shown += f.add(c.text[at:min(at+size, len(c.text))])
			}
			rest, calls := f.end()
			if shown += rest; shown != c.shown || len(calls) != len(c.calls) {
				t.Fatalf("%q in pieces of %d: %q and %d calls, want %q and %d", c.text, size, shown, len(calls), c.shown, len(c.calls))
			}
			for i, got := range calls {
				if got.name != c.calls[i].name || got.arguments != c.calls[i].arguments || got.id == "" {
					t.Errorf("%q: %v, want %v", c.text, got, c.calls[i])
				}
			}
		}
	}
}

// Text that is no call goes on at once.
func TestTextIsNotHeld(t *testing.T) {
	f := toolbox{names: map[string]bool{"rain": true}}.filter()
	if got := f.add("It "); got != "It " {
		t.Errorf("%q", got)
	}
	if got := f.add("rains < 3 <"); got != "rains < 3 " {
		t.Errorf("%q", got)
	}
	if got := f.add("4"); got != "<4" {
		t.Errorf("%q", got)
	}
}

func TestOneCall(t *testing.T) {
	f := toolbox{names: map[string]bool{"rain": true}, one: true}.filter()
	f.add(`{"name": "rain"};{"name": "rain"}`)
	if _, calls := f.end(); len(calls) != 1 {
		t.Errorf("%d calls with parallel_tool_calls false", len(calls))
	}
}
