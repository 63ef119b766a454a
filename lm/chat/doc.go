// Package chat renders a conversation by a model's chat template, as
// apply_chat_template of transformers does: messages in, and the text out that the
// model was trained on, special tokens included.
//
//	template, err := chat.Open("models/smollm2")   // the folder with tokenizer_config.json
//	text, err := template.Render([]chat.Message{
//		{Role: "user", Content: "Why is the sky blue?"},
//	}, chat.Options{AddGenerationPrompt: true})
//
// A Message reads and writes the JSON of OpenAI's API. The text goes to the
// tokenizer, which must add no special tokens of its own. RenderGuarded and the
// tokenizer's EncodeGuarded keep what a user wrote from becoming special tokens.
//
// # What is rendered
//
// Templates are in Jinja, with what transformers adds to it: raise_exception,
// strftime_now, tojson, break, continue and generation. Package jinja, which renders
// them, lists what is supported; anything else is an error that names it. A text that
// is rendered is the one that transformers gives, with two exceptions that the servers
// of vLLM and transformers make as well. Arguments of tool calls may be a JSON text. And
// where a template takes texts alone, a content that is a list of text parts is one text
// with line feeds between, as vLLM has it; transformers fails or prints the list as
// Python does.
//
// A template is a program of strangers: it reads nothing but the conversation, and
// it is stopped after a bounded number of steps.
package chat
