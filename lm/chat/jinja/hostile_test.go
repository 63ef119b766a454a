package jinja

import (
	"strings"
	"testing"
	"time"
)

func nested(begin, inner, end string, n int) string {
	return strings.Repeat(begin, n) + inner + strings.Repeat(end, n)
}

// A template that would not end, or fill the memory, is stopped by an error.
func TestHostile(t *testing.T) {
	for _, c := range []string{
		"{% for i in range(1000000000) %}{% endfor %}",
		"{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
		"{{ 'x' * 1000000000000 }}", "{{ 'x' * 9223372036854775807 }}", "{{ [1] * 99999999999 }}", "{{ ['x' * 1000000] * 1000000 }}",
		"{% set ns = namespace(x='x') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
		"{% set ns = namespace(x='x') %}{% for i in range(99) %}{% set ns.x = ns.x.replace('x', 'xxxx') %}{% endfor %}",
		"{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
		"{% set ns = namespace(x=[1]) %}{% for i in range(9999) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
		"{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x|tojson }}",
		"{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
		"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
		"{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
		"{{ [1]|tojson(indent=9999999999) }}", "{{ range(9999)|list|tojson(indent=99999) }}", "{{ 'a'.ljust(9999999999) }}", "{{ '1'.zfill(9999999999) }}", "{{ 'a\n'|indent(9999999999) }}", "{{ 'x' * 20000000 |length }}",
		"{{ ('x,' * 1000000).split(',')|map('upper')|join('y' * 100000) }}", "{{ range(99999)|map('string')|join('y' * 100000) }}",
		"{{ {'a': {'b': 1}}|tojson(indent='x' * 999999999) }}", "{{ range(99999)|list|tojson(separators=('y' * 99999, '')) }}",
		"{{ 9 ** 999999999 }}", "{{ 2 ** 9223372036854775807 }}", "{{ ('a' * 100000).strip('b' * 100000 ~ 'a') * 300 }}",
		nested("(", "1", ")", 100_000), "{{ " + nested("(", "1", ")", 100_000) + " }}", "{{ " + nested("[", "", "]", 100_000) + " }}",
		"{{ " + nested("-", "1", "", 100_000) + " }}", "{{ " + nested("not ", "1", "", 100_000) + " }}", "{{ 1" + nested("", "", "+1", 100_000) + " }}",
		"{{ x" + nested("", "", "|trim", 100_000) + " }}", "{{ x" + nested("", "", ".x", 100_000) + " }}", nested("{% if x %}", "", "{% endif %}", 10_000),
		"{{ 1" + nested(" if 1 else 1", "", "", 100_000) + " }}", "{{ x" + nested("", "", "()", 100_000) + " }}", strings.Repeat("x", MaxTemplate+1), "\xff",
		"{% for " + nested("(", "x", ")", 100_000) + " in x %}{% endfor %}", "{% if x %}" + strings.Repeat("{% elif x %}", 80_000) + "{% endfor %}",
	} {
		begin := time.Now()
		text, err := render(c, nil)
		if strings.HasPrefix(c, "(") {
			continue // no tag, so it is a text
		}
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.90q gives %d bytes, %v", c, len(text), err)
		}
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("%.90q took %v", c, took)
		} else if took > time.Second {
			t.Logf("%.90q took %v", c, took)
		}
	}
}
