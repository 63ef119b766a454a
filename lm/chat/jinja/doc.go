// Package jinja renders Jinja templates as models' chat templates use them: to the
// text that Python's Jinja2 3.1 gives with the settings of transformers, or to an
// error. It needs no Python, and imports nothing of this module.
//
//	template, err := jinja.Parse("{% for m in messages %}<{{ m.role }}>{{ m.content|trim }}\n{% endfor %}")
//	text, err := template.Render(map[string]any{
//		"messages": []any{map[string]any{"role": "user", "content": " Hello "}},
//	}, time.Now())
//
// Package lm/chat, on top of it, finds the template of a model's folder and gives it
// its special tokens, messages and tools. FromJSON makes variables of JSON, with the
// keys of objects in their order.
//
// # What is supported
//
//   - Tags: if, for (with if, else and recursive), break, continue, set, macro, call,
//     filter, with, raw, generation and comments. Line ends and blanks around tags are
//     trimmed as trim_blocks and lstrip_blocks say.
//   - Expressions: all of Jinja's but self, arguments with *, keys with commas and
//     integers beyond 64 bits.
//   - Filters: abs, capitalize, count, d, default, dictsort, e, escape, first, float,
//     format (%s, %d, %c and %%), indent, int, items, join, last, length, list, lower,
//     map, max, min, reject, rejectattr, replace, reverse, round, safe, select,
//     selectattr, sort, string, sum, title, tojson, trim, unique and upper. The filter
//     tojson is that of transformers, which escapes nothing for HTML.
//   - Tests: all of Jinja's but escaped, filter and test; sameas for none, true and
//     false.
//   - Functions: range, dict, namespace, raise_exception and strftime_now.
//   - Methods: get, items, keys, values and copy of dictionaries; count, index and copy
//     of lists; of texts capitalize, count, endswith, find, format (fields without a
//     form of their own), index, join, ljust, lower, lstrip, partition, removeprefix,
//     removesuffix, replace, rfind, rjust, rpartition, rsplit, rstrip, split,
//     splitlines, startswith, strip, swapcase, title, upper, zfill and those that begin
//     with is, but isidentifier, isprintable and istitle.
//
// # What is refused
//
// What Python refuses is an error. So is what Python does and this package does not,
// and it is never another text: the tags extends, include, import, block and
// autoescape, other filters and methods, formats with widths and keys, methods of a
// text marked as safe, and letters whose class or case Go's tables do not know as
// Python's do.
//
// Parse refuses what it can see. A filter or test of Jinja that is not supported is
// refused where it is used, since templates have some in branches that few
// conversations reach. One that Jinja does not have either is refused where Jinja
// refuses it: in a branch of an if when it is used, and elsewhere by Parse.
//
// # Bounds
//
// Templates are programs of strangers. They read nothing but their variables, and
// cannot change them. A template has at most MaxTemplate bytes, with blocks and
// expressions at most 200 deep. A rendering takes at most MaxSteps steps, which is a
// few seconds, and gives at most 16 bytes for each of them (160 MB). Macros,
// recursive loops and values are at most 100 deep, and a range has at most 100,000
// numbers. Beyond a bound there is an error, and no panic.
//
// # Within
//
// A template goes through three stages: lex cuts it into tokens, and into texts
// whose blanks are trimmed; the parser makes statements and expressions (nodes.go),
// with hide (scope.go) finding the names that Jinja resolves before it renders;
// exec.go and eval.go go through them with Python's values (value.go).
package jinja
