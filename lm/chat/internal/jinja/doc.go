// Package jinja renders templates in the part of Jinja that chat templates use, to
// the text that Jinja2 3.1 gives with transformers' settings (trim_blocks,
// lstrip_blocks, no autoescape, loop controls), or to an error.
//
// A template goes through three stages: lex cuts it into tokens, and into texts
// whose blanks are trimmed; the parser makes statements and expressions (nodes.go),
// with hide (scope.go) finding the names that Jinja resolves before it renders;
// exec.go and eval.go go through them with Python's values (value.go).
//
// What Python does and this package does not is an error everywhere, and never
// another text: integers beyond 64 bits, formatting by %, texts marked as safe in
// most places, attributes of types that are not listed.
//
// Templates are not trusted. The size of a template, the depth of what it nests and
// the steps of a rendering are bounded.
package jinja
