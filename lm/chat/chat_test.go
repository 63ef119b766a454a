package chat

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

type chats struct {
	Now           time.Time
	Specials      map[string]string
	Conversations map[string][]Message
	Options       map[string]map[string]json.RawMessage
	Texts         []string
	Cases         []struct {
		Template, Conversation, Options string
		Text                            *int
		Error                           string
	}
}

func readGolden(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

func optionsOf(t *testing.T, fields map[string]json.RawMessage) Options {
	o := Options{Variables: map[string]any{}}
	for name, raw := range fields {
		var err error
		switch name {
		case "add_generation_prompt":
			err = json.Unmarshal(raw, &o.AddGenerationPrompt)
		case "continue_final_message":
			if err = json.Unmarshal(raw, &o.ContinueFinalMessage); err != nil {
				o.ContinueFinalMessage = true
				err = json.Unmarshal(raw, &o.ContinuedField)
			}
		case "tools":
			var tools []json.RawMessage
			err = json.Unmarshal(raw, &tools)
			o.Tools = []any{}
			for _, tool := range tools {
				o.Tools = append(o.Tools, tool)
			}
		default:
			o.Variables[name] = raw
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// Conversations are rendered as transformers renders them, and refused where it
// refuses them.
func TestRender(t *testing.T) {
	var golden chats
	readGolden(t, "chats.json", &golden)
	templates := map[string]*Template{}
	equal, refused, lists := 0, 0, 0
	for _, c := range golden.Cases {
		template := templates[c.Template]
		if template == nil {
			text, err := os.ReadFile(filepath.Join("testdata", "templates", c.Template+".jinja"))
			if err != nil {
				t.Fatal(err)
			}
			if template, err = Parse(string(text), golden.Specials); err != nil {
				t.Fatalf("%s: %v", c.Template, err)
			}
			templates[c.Template] = template
		}
		o := optionsOf(t, golden.Options[c.Options])
		o.Now = golden.Now
		got, err := template.Render(golden.Conversations[c.Conversation], o)
		name := c.Template + ", " + c.Conversation + ", " + c.Options
		switch {
		case c.Text == nil && err == nil:
			t.Errorf("%s: transformers refuses it (%s), and here it is\n%q", name, c.Error, got)
		case c.Text == nil:
			refused++
			if c.Error == "TemplateError" != errors.Is(err, ErrRaised) {
				t.Errorf("%s: %v, where transformers has a %s", name, err, c.Error)
			}
		case strings.Contains(golden.Texts[*c.Text], "[{'type': 'text'"):
			lists++
			if err == nil || !strings.Contains(err.Error(), "takes texts alone") {
				t.Errorf("%s: %q, %v, where transformers prints a list as Python does", name, got, err)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case got != golden.Texts[*c.Text]:
			t.Errorf("%s:\n%q, and transformers has\n%q", name, got, golden.Texts[*c.Text])
		default:
			equal++
		}
	}
	t.Logf("%d templates, %d cases: %d texts equal, %d refused by both, %d lists printed by transformers are refused here", len(templates), len(golden.Cases), equal, refused, lists)
	if len(templates) < 12 || equal < 1000 {
		t.Error("the goldens are not complete")
	}
}

// What a caller gives and what no template can take is refused by one sentence.
func TestRenderRefuses(t *testing.T) {
	template, err := Parse("{{ messages[0].content }}", nil)
	if err != nil {
		t.Fatal(err)
	}
	one := []Message{{Role: "user", Content: "x"}}
	for want, given := range map[string]struct {
		messages []Message
		o        Options
	}{
		"is empty":            {nil, Options{}},
		"give only one of":    {one, Options{AddGenerationPrompt: true, ContinueFinalMessage: true}},
		"belongs to":          {one, Options{ContinuedField: "content"}},
		"reads no thinking":   {one, Options{ContinueFinalMessage: true, ContinuedField: "thinking"}},
		"not UTF-8":           {[]Message{{Role: "user", Content: "\xff"}}, Options{}},
		"cannot be written":   {one, Options{Variables: map[string]any{"f": func() {}}}},
		"is set by Render":    {one, Options{Variables: map[string]any{"messages": 1}}},
		"it is not a JSON":    {one, Options{Tools: []any{"weather"}}},
		"deep":                {one, Options{Documents: []any{map[string]any{"x": json.RawMessage(strings.Repeat("[", 500) + strings.Repeat("]", 500))}}}},
		"no text as its":      {[]Message{{Extra: map[string]any{"content": nil}}}, Options{ContinueFinalMessage: true}},
		"64 bits":             {one, Options{Variables: map[string]any{"n": json.RawMessage("99999999999999999999")}}},
		"documents, number 1": {one, Options{Documents: []any{nil}}},
	} {
		got, err := template.Render(given.messages, given.o)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q, %v; an error that says %q was expected", got, err, want)
		}
	}
}

// Keys stand as they were given; a Go map's are sorted.
func TestKeyOrder(t *testing.T) {
	template, err := Parse("{{ tools|tojson }}", nil)
	if err != nil {
		t.Fatal(err)
	}
	type tool struct {
		Name string `json:"name"`
		Also int    `json:"also"`
	}
	got, err := template.Render([]Message{{}}, Options{Tools: []any{tool{"<f>", 1}, json.RawMessage(`{"z":1.0,"a":{"y":2,"b":3}}`), map[string]any{"q": 1, "p": 2}}})
	if want := `[{"name": "<f>", "also": 1}, {"z": 1.0, "a": {"y": 2, "b": 3}}, {"p": 2, "q": 1}]`; err != nil || got != want {
		t.Errorf("%s, %v; expected\n%s", got, err, want)
	}
}
