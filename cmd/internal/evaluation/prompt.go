package evaluation

import (
	"fmt"
	"sort"

	"github.com/rope-rewrite/rope-rewrite/lm/chat"
	"github.com/rope-rewrite/rope-rewrite/lm/tokenizer"
)

// prompter makes the tokens of a prompt, in the form of the model's conversations where it has
// one.
type prompter struct {
	tokenizer *tokenizer.Tokenizer
	chat      *chat.Template // nil asks in plain text
}

// tokens are those of a whole prompt, up to where the model goes on.
func (c *cell) tokens(haystack, question, answer string) ([]int64, error) {
	text := c.form.Before + haystack + "\n\n" + question
	if c.chat == nil {
		if c.form.System != "" {
			text = c.form.System + "\n\n" + text
		}
		return c.tokenizer.EncodeWithSpecial(text + "\n" + answer)
	}
	var messages []chat.Message
	if c.form.System != "" {
		messages = append(messages, chat.Message{Role: "system", Content: c.form.System})
	}
	messages = append(messages, chat.Message{Role: "user", Content: text})
	options := chat.Options{AddGenerationPrompt: answer == ""}
	if answer != "" { // what stands before an answer is the template's matter, as a space or an empty thought
		messages = append(messages, chat.Message{Role: "assistant", Content: answer})
		options.ContinueFinalMessage = true
	}
	text, err := c.chat.Render(messages, options)
	if err != nil {
		return nil, err
	}
	return c.tokenizer.Encode(text)
}

// slack is how many tokens two samples of a cell may differ by: not all numbers have as many.
const slack = 8

// fit is the largest number of units with which prompt and answer have at most the cell's tokens.
func (c *cell) fit(task string, asked func(n int) (haystack, question, answer string)) (int, error) {
	room := c.length - c.form.Tokens - slack
	var failed error
	long := func(n int) bool {
		tokens, err := c.tokens(asked(n))
		if err != nil {
			failed = err
		}
		return err != nil || len(tokens) > room
	}
	most := 1
	for !long(most) {
		most *= 2
	}
	n := sort.Search(most, long) - 1
	switch {
	case failed != nil:
		return 0, failed
	case n < 0:
		return 0, fmt.Errorf("%s: %d tokens are too few for the prompt; give larger --lengths", task, c.length)
	}
	return n, nil
}
