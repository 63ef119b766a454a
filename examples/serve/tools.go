package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"strings"
)

// toolbox is which functions a model may call.
type toolbox struct {
	names map[string]bool // nil is none
	one   bool            // at most one call
}

// call is a call of a function that a model wrote.
type call struct{ id, name, arguments string }

// The beginnings of calls: of Hermes and Qwen, of Mistral and of Llama 3, whose calls may begin with { alone.
const (
	hermes  = "<tool_call>"
	mistral = "[TOOL_CALLS]"
	llama   = "<|python_tag|>"
)

var beginnings = []string{hermes, mistral, llama}

// callFilter holds back what may be a call, while the text before it goes on.
type callFilter struct {
	toolbox
	held    string
	begun   bool // some text was let through
	holding bool // until the end
}

// filter is nil without tools.
func (t toolbox) filter() *callFilter {
	if t.names == nil {
		return nil
	}
	return &callFilter{toolbox: t}
}

// add takes the next text and returns what is certainly no call.
func (f *callFilter) add(text string) string {
	f.held += text
	if f.holding {
		return ""
	}
	start := strings.TrimSpace(f.held)
	if !f.begun && (start == "" || start[0] == '{') {
		f.holding = start != ""
		return ""
	}
	to := len(f.held) - f.partial()
	for _, b := range beginnings {
		if at := strings.Index(f.held, b); at >= 0 && at <= to {
			to, f.holding = at, true
		}
	}
	shown := f.held[:to]
	if !f.begun && strings.TrimSpace(shown) == "" {
		return "" // space before a call belongs to it
	}
	f.begun, f.held = true, f.held[to:]
	return shown
}

// partial is how many bytes at the end may be the first of a beginning.
func (f *callFilter) partial() int {
	most := 0
	for _, b := range beginnings {
		for n := min(len(b)-1, len(f.held)); n > most; n-- {
			if strings.HasSuffix(f.held, b[:n]) {
				most = n
			}
		}
	}
	return most
}

// end returns what was held back: as calls if it is nothing else, or as text.
func (f *callFilter) end() (string, []call) {
	calls, ok := f.parse(strings.TrimSpace(f.held))
	if !ok {
		return f.held, nil
	}
	if f.one {
		calls = calls[:1]
	}
	return "", calls
}

// parse reads calls of functions that the request has. ok is false if there is anything else.
func (t toolbox) parse(text string) (calls []call, ok bool) {
	read := t.oneObject
	switch {
	case strings.HasPrefix(text, hermes):
		read = t.inTags
	case strings.HasPrefix(text, mistral):
		text = strings.TrimSpace(strings.TrimPrefix(text, mistral))
		if strings.HasPrefix(text, "[") {
			return t.list(text)
		}
		read = t.named
	case strings.HasPrefix(text, llama):
		text = strings.TrimSpace(strings.TrimPrefix(text, llama))
	}
	for text != "" {
		c, rest, ok := read(text)
		if !ok {
			return nil, false
		}
		calls, text = append(calls, c), strings.TrimSpace(rest)
	}
	return calls, len(calls) > 0
}

// inTags reads <tool_call>{…}</tool_call>. The last end may be missing: some models end the text there.
func (t toolbox) inTags(text string) (c call, rest string, ok bool) {
	inner, found := strings.CutPrefix(text, hermes)
	if !found {
		return c, "", false
	}
	if c, rest, ok = t.object(inner); !ok {
		return c, "", false
	}
	rest, closed := strings.CutPrefix(strings.TrimSpace(rest), "</tool_call>")
	return c, rest, closed || rest == ""
}

// oneObject reads {…} and the semicolon between two of them.
func (t toolbox) oneObject(text string) (c call, rest string, ok bool) {
	c, rest, ok = t.object(text)
	return c, strings.TrimPrefix(strings.TrimSpace(rest), ";"), ok
}

// named reads NAME[ARGS]{…}, as newer models of Mistral write it, with or without [TOOL_CALLS] in front.
func (t toolbox) named(text string) (c call, rest string, ok bool) {
	text = strings.TrimSpace(strings.TrimPrefix(text, mistral))
	name, _, _ := strings.Cut(text, "{")
	arguments, rest, ok := value(text[len(name):])
	name, _, _ = strings.Cut(name, "[") // [CALL_ID]… and [ARGS] follow
	if !ok {
		return c, "", false
	}
	c, ok = t.call(strings.TrimSpace(name), arguments)
	return c, rest, ok
}

func (t toolbox) list(text string) (calls []call, ok bool) {
	var objects []json.RawMessage
	if json.Unmarshal([]byte(text), &objects) != nil {
		return nil, false
	}
	for _, o := range objects {
		c, _, ok := t.object(string(o))
		if !ok {
			return nil, false
		}
		calls = append(calls, c)
	}
	return calls, len(calls) > 0
}

// object reads {"name": …, "arguments": {…}}, or parameters in place of arguments.
func (t toolbox) object(text string) (c call, rest string, ok bool) {
	one, rest, ok := value(text)
	if !ok {
		return c, "", false
	}
	var fields struct {
		Name                  string
		Arguments, Parameters json.RawMessage
	}
	if json.Unmarshal(one, &fields) != nil {
		return c, "", false
	}
	if fields.Arguments == nil {
		fields.Arguments = fields.Parameters
	}
	c, ok = t.call(fields.Name, fields.Arguments)
	return c, rest, ok
}

// value cuts a JSON value off a text.
func value(text string) (json.RawMessage, string, bool) {
	d := json.NewDecoder(strings.NewReader(text))
	var v json.RawMessage
	if d.Decode(&v) != nil {
		return nil, "", false
	}
	return v, text[d.InputOffset():], true
}

// call checks that there is such a function and that its arguments are an object.
func (t toolbox) call(name string, arguments json.RawMessage) (call, bool) {
	var asText string
	switch {
	case !t.names[name]:
		return call{}, false
	case arguments == nil:
		arguments = json.RawMessage("{}")
	case json.Unmarshal(arguments, &asText) == nil: // some models write JSON in a text
		arguments = json.RawMessage(asText)
	}
	var b bytes.Buffer
	if json.Compact(&b, arguments) != nil || b.Bytes()[0] != '{' {
		return call{}, false
	}
	return call{"call_" + rand.Text(), name, b.String()}, true
}
