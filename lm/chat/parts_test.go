package chat

import (
	"encoding/json"
	"strings"
	"testing"
)

// Text parts become one text where a template takes texts alone, and stay parts where
// it goes through them.
func TestParts(t *testing.T) {
	var message, one Message
	for into, text := range map[*Message]string{
		&message: `{"role":"user","content":[{"type":"text","text":"It's"},{"type":"text","text":"<one> "}]}`,
		&one:     `{"role":"user","content":"It's\n<one> "}`,
	} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	for source, parts := range map[string]bool{
		"{% for m in messages %}{{ m.role + m.content }}{% endfor %}":                                                          false, // an error in Python
		"{% for m in messages %}{{ m.role }} {{ m.content|trim }}!{% endfor %}":                                                false, // a list in Python
		"{% if messages[0].content is not string %}{{ raise_exception('no') }}{% endif %}{{ messages[0].content }}.":           false,
		"{% for p in messages[0].content %}{{ p.text }},{% endfor %}":                                                          true,
		"{{ messages[0].content|tojson }}":                                                                                     true,
		"{% if messages[0].content is string %}{{ messages[0].content }}{% else %}{{ messages[0].content|length }}{% endif %}": true,
	} {
		template, err := Parse(source, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []Options{{}, {ContinueFinalMessage: true}} {
			got, err := template.Render([]Message{message}, o)
			joined, joinedErr := template.Render([]Message{one}, o)
			switch {
			case !parts && (err != nil || joinedErr != nil || got != joined):
				t.Errorf("%s: %q, %v; with one text %q, %v", source, got, err, joined, joinedErr)
			case parts && !o.ContinueFinalMessage && (err != nil || got == joined):
				t.Errorf("%s: %q, %v, although it takes parts", source, got, err)
			}
			if text, guardErr := template.RenderGuarded([]Message{message}, o, []string{"<one>"}); text.Text != got || (guardErr == nil) != (err == nil) {
				t.Errorf("%s: %q, %v is not what Render gives", source, text.Text, guardErr)
			}
		}
	}
	template, err := Parse("{{ messages[0].content }}", nil)
	if err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string]string{
		`[{"type":"image_url","image_url":{"url":"x"}}]`: "message 1 has a part of the type image_url",
		`[{"type":"text"}]`: "message 1 has a part of the type text",
	} {
		got, err := template.Render([]Message{{Role: "user", Extra: map[string]any{"content": json.RawMessage(content)}}}, Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v", content, got, err)
		}
	}
	for _, content := range []string{`[1, "two"]`, `{"type":"text"}`} { // results of tools, which no API knows as parts
		if got, err := template.Render([]Message{{Extra: map[string]any{"content": json.RawMessage(content)}}}, Options{}); err != nil || got == "" {
			t.Errorf("%s: %q, %v", content, got, err)
		}
	}
}
