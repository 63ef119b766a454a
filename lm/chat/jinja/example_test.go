package jinja_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/rope-rewrite/rope-rewrite/lm/chat/jinja"
)

func Example() {
	template, err := jinja.Parse(`
{%- if messages[0].role != 'user' %}{{ raise_exception('The user speaks first') }}{% endif %}
{%- for m in messages %}
{{- '<|' ~ m.role ~ '|>' ~ m.content|trim }}
{% endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := template.Render(map[string]any{
		"messages": []any{
			map[string]any{"role": "user", "content": " Is it raining? "},
			map[string]any{"role": "assistant", "content": "No."},
		},
		"add_generation_prompt": true,
	}, time.Now())
	fmt.Println(text, err)

	_, err = template.Render(map[string]any{"messages": []any{map[string]any{"role": "assistant"}}}, time.Now())
	fmt.Println(errors.Is(err, jinja.ErrRaised), err)
	// Output:
	// <|user|>Is it raining?
	// <|assistant|>No.
	// <|assistant|> <nil>
	// true line 2: the template refuses the conversation: The user speaks first
}

// Objects of JSON keep the order of their keys, in which a model was trained to read
// them.
func ExampleFromJSON() {
	tool, err := jinja.FromJSON([]byte(`{"name": "weather", "days": 2, "at": [47.4, 8.5]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	template, err := jinja.Parse("{{ tool|tojson }}\n{{ tool.at }}")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(template.Render(map[string]any{"tool": tool}, time.Now()))
	// Output:
	// {"name": "weather", "days": 2, "at": [47.4, 8.5]}
	// [47.4, 8.5] <nil>
}

// A template that would not end is stopped.
func ExampleTemplate_Render_bounds() {
	template, err := jinja.Parse("{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = template.Render(nil, time.Now())
	fmt.Println(err)
	// Output:
	// line 1: macros, loops or values are more than 100 deep, which is not supported
}
