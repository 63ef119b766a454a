package evaluation

import (
	"sort"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation/task"
	"github.com/rope-rewrite/rope-rewrite/lm"
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
func (p *prompter) tokens(prompt task.Prompt) ([]int64, error) {
	if p.chat == nil {
		text := prompt.Text
		if prompt.System != "" {
			text = prompt.System + "\n\n" + text
		}
		if !strings.HasPrefix(prompt.Answer, " ") { // such an answer goes on behind the question
			text += "\n"
		}
		return p.tokenizer.EncodeWithSpecial(text + prompt.Answer)
	}
	var messages []chat.Message
	if prompt.System != "" {
		messages = append(messages, chat.Message{Role: "system", Content: prompt.System})
	}
	messages = append(messages, chat.Message{Role: "user", Content: prompt.Text})
	options := chat.Options{AddGenerationPrompt: prompt.Answer == ""}
	if prompt.Answer != "" { // what stands before an answer is the template's matter, as a space or an empty thought
		messages = append(messages, chat.Message{Role: "assistant", Content: prompt.Answer})
		options.ContinueFinalMessage = true
	}
	text, err := p.chat.Render(messages, options)
	if err != nil {
		return nil, err
	}
	return p.tokenizer.Encode(text)
}

// row is a prompt with the document of each token, if its text is of documents: Anchor for what stands before
// them, Reader for what stands behind them. It has no documents where decoding gives another text.
func (p *prompter) row(prompt task.Prompt) (row lm.Row, err error) {
	if row.Tokens, err = p.tokens(prompt); err != nil || prompt.Cuts == nil {
		return row, err
	}
	var whole strings.Builder
	starts := make([]int, len(row.Tokens))
	stream := p.tokenizer.Stream(true)
	for i, id := range row.Tokens {
		starts[i] = whole.Len()
		whole.WriteString(stream.Add(id))
	}
	whole.WriteString(stream.Flush())
	at := strings.Index(whole.String(), prompt.Text)
	if at < 0 {
		return row, nil
	}
	cuts := prompt.Cuts
	for _, start := range starts {
		document := int64(sort.Search(len(cuts), func(i int) bool { return cuts[i] > start-at }))
		if document == int64(len(cuts)) {
			document = lm.Reader
		}
		row.Documents = append(row.Documents, document)
	}
	return row, nil
}

// count is how many tokens a prompt has.
func (p *prompter) count(prompt task.Prompt) (int, error) {
	tokens, err := p.tokens(prompt)
	return len(tokens), err
}
