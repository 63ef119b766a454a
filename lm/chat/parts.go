package chat

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/lm/chat/jinja"
)

// textsForParts puts one text in the place of each content that is a list of parts,
// if the template takes texts alone. Many do: they end with an error, or print the
// list as Python does, which no model was trained on. Texts are joined by line feeds
// as vLLM joins them.
func (r *rendering) textsForParts() error {
	messages := r.variables["messages"].(jinja.List)
	if !slices.ContainsFunc(messages, func(m any) bool { return partsOf(m) != nil }) {
		return nil
	}
	whole := *r
	whole.continued = "" // continuing changes the parts
	text, err := whole.render()
	if err == nil && !printsParts(text, messages) {
		return nil
	}
	joined := slices.Clone(messages)
	for i, m := range messages {
		parts := partsOf(m)
		if parts == nil {
			continue
		}
		content, kind := join(parts)
		if kind != "" && err != nil {
			return nil // the template's own error says more
		}
		if kind != "" {
			return fmt.Errorf("message %d has a part of the type %s, which is no text, and the chat template takes texts alone", i+1, kind)
		}
		m := jinja.MapTexts(m, strings.Clone).(*jinja.Dict)
		m.Set("content", content)
		joined[i] = m
	}
	r.variables = maps.Clone(r.variables)
	r.variables["messages"] = joined
	return nil
}

// partsOf gives the content of a message that is a list of parts, or nil.
func partsOf(message any) jinja.List {
	content, _ := message.(*jinja.Dict).Get("content")
	parts, _ := content.(jinja.List)
	for _, part := range parts {
		if kind(part) == "" {
			return nil
		}
	}
	return parts
}

// kind is the type of a part, or empty.
func kind(part any) string {
	d, ok := part.(*jinja.Dict)
	if !ok {
		return ""
	}
	v, _ := d.Get("type")
	name, _ := v.(string)
	return name
}

// join gives the text of parts, or the type of one that is no text.
func join(parts jinja.List) (text, other string) {
	var texts []string
	for _, part := range parts {
		v, _ := part.(*jinja.Dict).Get("text")
		text, ok := v.(string)
		if !ok || kind(part) != "text" {
			return "", kind(part)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n"), ""
}

// printsParts says whether a text has a list of parts as Python prints it.
func printsParts(text string, messages jinja.List) bool {
	for _, m := range messages {
		parts := partsOf(m)
		if parts == nil {
			continue
		}
		if printed, err := jinja.Print(parts); err == nil && strings.Contains(text, printed) {
			return true
		}
	}
	return false
}
