package chat

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/lm/chat/jinja"
)

// tag marks the end of the message that is continued, as transformers does it.
const tag = "CONTINUE_FINAL_MESSAGE_TAG "

// mark puts the tag behind a field of the last message, or behind the field's last
// part that is a text, and returns what it stands behind.
func mark(variables map[string]any, field, template string) (string, error) {
	if !strings.Contains(template, field) {
		return "", fmt.Errorf("the chat template reads no %s, so the last message cannot be continued", field)
	}
	messages := variables["messages"].(jinja.List)
	last := jinja.MapTexts(messages[len(messages)-1], strings.Clone).(*jinja.Dict)
	variables["messages"] = append(slices.Clone(messages[:len(messages)-1]), last)
	content, _ := last.Get(field)
	switch content := content.(type) {
	case string:
		last.Set(field, content+tag)
		return content, nil
	case jinja.List:
		for _, part := range slices.Backward(content) {
			part, ok := part.(*jinja.Dict)
			if !ok {
				break
			}
			if text, ok := part.Get("text"); ok {
				if text, ok := text.(string); ok {
					part.Set("text", text+tag)
					return text, nil
				}
				break
			}
		}
	}
	return "", fmt.Errorf("the last message has no text as its %s, so it cannot be continued", field)
}

// cut ends the text where the continued message ends.
func cut(text, continued string) (string, error) {
	bare := strings.TrimFunc(tag, jinja.IsSpace)
	at := strings.LastIndex(text, bare)
	if at < 0 || !strings.Contains(text, strings.TrimFunc(continued, jinja.IsSpace)) {
		return "", errors.New("the chat template changes the text of the last message, so it cannot be continued")
	}
	if strings.HasPrefix(text[at:], tag) {
		return text[:at], nil
	}
	return strings.TrimRightFunc(text[:at], jinja.IsSpace), nil
}
