package chat

import (
	"errors"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/lm/chat/jinja"
)

// tag marks the end of the message that is continued, as transformers does it.
const tag = "CONTINUE_FINAL_MESSAGE_TAG "

// mark puts the tag behind the last message's content, or behind its last part
// that is a text, and returns what it stands behind.
func mark(variables map[string]any, template string) (string, error) {
	if !strings.Contains(template, "content") {
		return "", errors.New("the chat template reads no content, so the last message cannot be continued")
	}
	messages := variables["messages"].(jinja.List)
	last := messages[len(messages)-1].(*jinja.Dict)
	content, _ := last.Get("content")
	switch content := content.(type) {
	case string:
		last.Set("content", content+tag)
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
	return "", errors.New("the last message has no text as its content, so it cannot be continued")
}

// cut ends the text where the continued message ends.
func cut(text, continued string) (string, error) {
	bare := strings.TrimFunc(tag, jinja.IsSpace)
	at := strings.LastIndex(text, bare)
	if at < 0 || !strings.Contains(text, strings.TrimFunc(continued, jinja.IsSpace)) {
		return "", errors.New("the chat template does not print the last message as it is, so it cannot be continued")
	}
	if strings.HasPrefix(text[at:], tag) {
		return text[:at], nil
	}
	return strings.TrimRightFunc(text[:at], jinja.IsSpace), nil
}
