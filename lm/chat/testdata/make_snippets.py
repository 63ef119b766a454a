#!/usr/bin/env python3
"""Renders small Jinja templates with transformers' environment, for snippets.json.

    python make_snippets.py     # transformers 5.17.0, jinja2 3.1.6

Each line of SNIPPETS is a template. The golden has its text, or no text where Python
raises an error.
"""
import json
from pathlib import Path

from transformers.utils.chat_template_utils import _compile_jinja_template

CONTEXT = {
    "s": "  Hello, World!\n", "e": "", "u": "Ünïcödé 👋 ß", "w": "the quick-brown fox's  den", "n": 7, "neg": -3, "f": 2.5,
    "yes": True, "no": False, "nil": None, "xs": [3, 1, 2], "ws": ["b", "A", "c", "a"], "empty": [], "mixed": [1, "a", None, 2.0, True],
    "d": {"b": 1, "a": [1, {"x": None}], "c": "q\"<&>'\n\u00e9", "items": "shadow"}, "nodict": {},
    "num": "42", "lines": "one\ntwo\n\n  three", "tab": "a\tb",
    "ms": [{"role": "system", "content": "Be  brief."}, {"role": "user", "content": " Hi "},
           {"role": "assistant", "content": "Hello", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {"x": 1}}}]},
           {"role": "tool", "content": "{\"y\": 2}", "name": "f"}],
    "tree": {"v": 1, "kids": [{"v": 2, "kids": []}, {"v": 3, "kids": [{"v": 4, "kids": []}]}]},
}

SNIPPETS = r"""
plain text
{{ s }}
[{{ missing }}]
[{{ nil }}]
{{ yes }} {{ no }} {{ n }} {{ f }} {{ neg }}
{{ xs }} {{ d }} {{ mixed }}
{{ missing.attribute }}
{{ missing['key'] }}
{{ d.missing }}|{{ d['missing'] }}
{{ d.missing.more }}
{{ nil.x }}
{{ d.b }} {{ d['b'] }} {{ d.a[1].x }} {{ d['a'][0] }}
{{ d.items }}
{{ d['items'] }}
{{ d.items() }}
{{ xs[0] }} {{ xs[-1] }} [{{ xs[9] }}] [{{ xs[-9] }}]
{{ xs.0 }} {{ xs.1 }}
{{ ms[1:]|length }} {{ ms[:-1]|length }} {{ xs[::-1] }} {{ xs[1:2] }} {{ xs[::2] }} {{ xs[-2:] }} {{ xs[5:] }}
{{ s[2:7] }} {{ s[::-1] }} {{ u[0] }} {{ u[-3] }} {{ u[:8] }} [{{ u[99] }}]
{{ xs[2:0:-1] }} {{ xs[:1:-1] }} {{ xs[10:-10:-1] }}
{{ xs[::0] }}
{{ 'a' 'b' }}
{{ "a" ~ 1 ~ none ~ true ~ 2.0 ~ [1, 'x'] }}
{{ 'a' + 'b' }} {{ 1 + 2 }} {{ [1] + [2] }} {{ 1 + 2.0 }}
{{ 'a' + 1 }}
{{ 1 + 'a' }}
{{ 'a' * 3 }} {{ [1, 2] * 2 }} {{ 3 * 'ab' }} {{ 'x' * -1 }}|
{{ 7 / 2 }} {{ 6 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ -2 ** 2 }} {{ 2 ** 3 ** 2 }} {{ (2 ** 3) ** 2 }}
{{ 1 + 2 * 3 }} {{ (1 + 2) * 3 }} {{ 10 - 3 - 2 }} {{ 1 - -1 }} {{ +3 }}
{{ 1 ~ 2 + 3 }} {{ 1 + 2 ~ 3 }}
{{ 1e3 }} {{ 1.5e-7 }} {{ 1e16 }} {{ 123456789.125 }} {{ 1.0 }} {{ 1e22 }} {{ 0.1 + 0.2 }} {{ 1e400 }}
{{ 0x1F }} {{ 0b11 }} {{ 0o17 }} {{ 1_000 }}
{{ 9223372036854775807 + 1 }}
{{ 2 ** 64 }}
{{ 99999999999999999999 }}
{{ true and false }} {{ true or false }} {{ not true }} {{ none }} {{ True }} {{ False }} {{ None }}
{{ '' or 'x' }} {{ 'y' and 'x' }} {{ 0 or none }} {{ [] and 1 }} {{ not missing }} {{ missing or 5 }}
{{ not 1 in xs }} {{ 1 not in xs }} {{ 1 in xs }} {{ 'b' in d }} {{ 'H' in s }} {{ '' in s }} {{ 2.0 in xs }} {{ true in xs }}
{{ 1 in s }}
{{ 'a' in nil }}
{{ 'a' in missing }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 }} {{ 'a' == "a" }} {{ [1] == [1] }} {{ d == d }} {{ 1 == '1' }} {{ nil == missing }} {{ true == 1 }} {{ 0 == false }}
{{ 'a' < 'b' }} {{ 'B' < 'a' }} {{ [1, 2] < [1, 3] }} {{ 2 >= 2 }} {{ 2 != 3 }}
{{ 1 < 'a' }}
{{ nil < 1 }}
{{ missing < 1 }}
{{ missing + 1 }}
{{ missing == missing2 }} {{ missing == '' }} {{ missing != nil }}
{{ 'x' if yes else 'y' }} {{ 'x' if no else 'y' }} [{{ 'x' if no }}] {{ 1 if no else 2 if no else 3 }}
{{ ('x' if no).y }}
{{ [1, 'two', 3.0, none, true, [], {}, {'k': 'v'}] }}
{{ {'a': 1, 'b': {'c': [1]}}.b.c[0] }} {{ {1: 2}[1] }} {{ {'a': 1, 'a': 2} }}
{{ (1, 2) }} {{ (1,) }} {{ () }} {{ (1, 2)[0] }} {{ 1, 2 }}
{{ [1, 2,] }} {{ {'a': 1,} }}
{{ "it's" }} {{ ["it's", 'say "x"', 'both \' and "', 'back\\slash', 'tab\t', '\x01', 'é'] }}
{{ 'a\nb' }} {{ 'a\\nb' }} {{ '\u00e9' }} {{ '\x41' }} {{ '\'' }} {{ "\"" }} {{ '\q' }} {{ '\U0001F600' }} {{ '\101' }}|
{# a comment {{ x }} #}after
a {#- b -#} c
{{- '  x  ' -}}   end
a   {{- 'b' -}}   c
a {%- if true -%} b {%- endif -%} c
a {%+ if true +%} b {% endif %} c
{{ '{{' }} {{ '%}' }} {{ '}}' }}
{% raw %}{{ x }} {% y %}{% endraw %}!
{%- raw -%}  {{ x }}  {%- endraw -%}  !
{% if yes %}1{% elif no %}2{% else %}3{% endif %}{% if no %}1{% elif yes %}2{% else %}3{% endif %}{% if no %}1{% elif no %}2{% else %}3{% endif %}
{% if empty %}t{% else %}f{% endif %}{% if '' %}t{% else %}f{% endif %}{% if 0 %}t{% else %}f{% endif %}{% if 0.0 %}t{% else %}f{% endif %}{% if nodict %}t{% else %}f{% endif %}{% if ' ' %}t{% else %}f{% endif %}
{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }} {% endfor %}
{% for x in xs %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}
{% for x in xs %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{{ loop.cycle('a', 'b') }}{% endfor %}
{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{% endfor %}
{% for x in xs if x > 1 %}{{ x }}{{ loop.index }}{{ loop.last }}{{ loop.length }} {% else %}none{% endfor %}
{% for x in empty %}{{ x }}{% else %}none{% endfor %}
{% for x in missing %}{{ x }}{% else %}none{% endfor %}
{% for x in nil %}{{ x }}{% endfor %}
{% for x in 5 %}{{ x }}{% endfor %}
{% for c in 'añ👋' %}{{ c }}.{% endfor %}
{% for k in d %}{{ k }} {% endfor %}
{% for k, v in d|items %}{{ k }}={{ v }} {% endfor %}
{% for k, v in nodict.items() %}x{% else %}empty{% endfor %}
{% for k, v in {'z': 1, 'y': 2}.items() %}{{ k }}={{ v }} {% endfor %}
{% for a, b in [(1, 2), [3, 4]] %}{{ a }}{{ b }} {% endfor %}
{% for a, b in [1, 2] %}{{ a }}{% endfor %}
{% for a, b in [[1, 2, 3]] %}{{ a }}{% endfor %}
{% for x in xs %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}!
{% for x in xs %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}!
{% break %}
{% for x in xs %}{% for y in ws %}{% if y == 'A' %}{% break %}{% endif %}{{ x }}{{ y }}{{ loop.depth }} {% endfor %}{% endfor %}
{% for x in xs %}{% set y = x %}{% endfor %}[{{ y }}]
{% set y = 0 %}{% for x in xs %}{% set y = y + x %}{{ y }} {% endfor %}{{ y }}
{% set ns = namespace(y=0, z='q') %}{% for x in xs %}{% set ns.y = ns.y + x %}{% endfor %}{{ ns.y }}{{ ns.z }}[{{ ns.none }}]
{% set ns = namespace() %}{% set ns.found = false %}{{ ns.found }}{% set ns.list = [] %}{% set ns.list = ns.list + [1] %}{{ ns.list }}
{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}{{ ns['a'] }}
{% set d2 = {'a': 1} %}{% set d2.a = 2 %}{{ d2.a }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}
{% set x %}a {{ n }} b{% endset %}[{{ x }}]{{ x|length }}
{% set x | upper %}a {{ n }} b{% endset %}[{{ x }}]
{% if yes %}{% set x = 1 %}{% endif %}{{ x }}
{% set loop_messages = ms[1:] %}{% for m in loop_messages %}{{ m.role }},{{ m['content'] }};{% endfor %}
{% macro m(a, b='x', c=none) %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 2) }} {{ m(1, c=3) }} {{ m(b=5, a=4) }} {{ m() }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}
{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, k=3) }}
{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}body {{ n }}{% endcall %}
{% macro m(x) %}[{{ caller(x) }}]{% endmacro %}{% call(y) m(3) %}body {{ y }}{% endcall %}
{% macro fact(k) %}{% if k > 1 %}{{ k * (fact(k - 1)|int) }}{% else %}1{% endif %}{% endmacro %}{{ fact(5) }}
{% macro m() %}{{ n }}{% set n = 1 %}{% endmacro %}{{ m() }}
{% set q = 1 %}{% macro m() %}{{ q }}{% endmacro %}{% set q = 2 %}{{ m() }}
{% macro m(x=[]) %}{{ x }}{% endmacro %}{{ m() }}{{ m([1]) }}
{% macro a() %}A{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}
{% for x, in [[1]] %}{{ x }}{% endfor %}
{% for (x,) in [[1]] %}{{ x }}{% endfor %}{% set (x,) = [2] %}{{ x }}
{% generation %}{{ varargs }}{{ kwargs }}{% endgeneration %}
{% macro m() %}{% generation %}{{ caller() }}{% endgeneration %}{% endmacro %}{% call m() %}x{% endcall %}
{% for x in xs %}{% break %}{% else %}e{% endfor %}{% for x in xs %}{% continue %}{% else %}f{% endfor %}{% for x in xs %}{% if x == 1 %}{% break %}{% endif %}{% else %}g{% endfor %}
{{ (xs|map('string')|reverse)[1] }} {{ xs|reverse|list }} {{ (missing|reverse)|list }}
{{ [] in d.keys() }}
{{ 'b' in d.keys() }} {{ 1 in d.values() }} {{ ('b', 1) in d.items() }} {{ [] in d.values() }}
{% for x in xs %}{{ n }}{% endfor %}{% set n = 9 %}{{ n }}
{% macro m() %}{{ n }}{% endmacro %}{{ m() }}{% set n = 9 %}{{ m() }}
{% if no %}{% set n = 1 %}{% endif %}{{ n }}{% for x in xs %}{% if x == 1 %}{% set n = x %}{% endif %}{{ n }}{% endfor %}{{ n }}
{% for x in xs %}{% for y in xs %}{{ n }}{% endfor %}{% set n = 9 %}{{ n }}{% endfor %}
{% for x in xs %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}
{{ m is defined }}{% macro m() %}{% endmacro %}{{ m is defined }}{{ m is callable }}
{% for node in [tree] recursive %}{{ node.v }}{% if node.kids %}({{ loop(node.kids) }}){% endif %}{% endfor %}
{% generation %}inside {{ n }}{% endgeneration %} outside
{% for m in ms %}{% generation %}{{ m.role }}{% endgeneration %}{% endfor %}
{% with x = 1, y = 2 %}{{ x }}{{ y }}{% endwith %}[{{ x }}]
{% filter upper %}abc {{ n }}{% endfilter %}
{% do xs.append(4) %}{{ xs }}
{% set _ = xs.append(4) %}{{ xs }}
{% include 'x' %}
{% import 'x' as y %}
{% extends 'x' %}
{% block b %}in block{% endblock %}
{% autoescape true %}{{ '<' }}{% endautoescape %}
{% trans %}x{% endtrans %}
{% unknown %}
{{ unknown_function() }}
{{ s|unknown_filter }}
{{ s is unknown_test }}
{{ s.unknown_method() }}
{{ s.strip() }}|{{ s.lstrip() }}|{{ s.rstrip() }}|{{ s.strip(' H\n') }}|{{ 'xxaxx'.lstrip('x') }}|{{ 'xxaxx'.rstrip('x') }}
{{ w.split() }} {{ w.split(' ') }} {{ w.split(' ', 1) }} {{ w.rsplit(' ', 1) }} {{ 'a,b,,c'.split(',') }} {{ ''.split() }} {{ ''.split(',') }} {{ w.split('-')[-1] }}
{{ w.split('') }}
{{ w.split(none) }} {{ w.split(maxsplit=1) }} {{ w.split(sep=' ') }}
{{ s.startswith('  H') }} {{ s.endswith('\n') }} {{ 'abc'.startswith(('x', 'a')) }} {{ 'abc'.startswith('b', 1) }} {{ 'abc'.endswith(('c', 'x')) }}
{{ u.upper() }} {{ u.lower() }} {{ w.title() }} {{ w.capitalize() }} {{ 'aBc'.swapcase() }} {{ 'ǆ'.title() }} {{ "they're 2nd x1y".title() }}
{{ 'a-b-c'.replace('-', '+') }} {{ 'a-b-c'.replace('-', '+', 1) }} {{ 'ab'.replace('', '.') }}
{{ 'abcabc'.find('c') }} {{ 'abc'.find('z') }} {{ 'abcabc'.rfind('b') }} {{ 'aXbX'.count('X') }} {{ 'éa'.find('a') }} {{ 'abc'.index('b') }}
{{ 'abc'.index('z') }}
{{ '-'.join(['a', 'b']) }} {{ ''.join(ws) }}
{{ '-'.join([1, 2]) }}
{{ '42'.isdigit() }} {{ 'ab'.isalpha() }} {{ 'a1'.isalnum() }} {{ ' '.isspace() }} {{ 'AB'.isupper() }} {{ 'ab'.islower() }} {{ ''.isdigit() }}
{{ '7'.zfill(3) }} {{ 'a'.ljust(3) }}| {{ 'a'.rjust(3, '.') }} {{ 'a'.center(4, '*') }}
{{ lines.splitlines() }} {{ 'prefix-x'.removeprefix('prefix-') }} {{ 'x.txt'.removesuffix('.txt') }} {{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }}
{{ 'x {} y {}'.format(1, 'z') }}
{{ '%s is %d' % ('a', 3) }}
{{ '%s' % 'a' }}
{{ 'abc'.encode() }}
{{ s.__class__ }}
{{ xs.__class__.__mro__ }}
{{ d.keys()|list }} {{ d.values()|list|length }} {{ d.get('b') }} {{ d.get('zz') }} {{ d.get('zz', 'dflt') }} {{ d.get('a')[0] }}
{{ d.keys() }}
{{ d.values() }}
{{ d.items()|list }}
{{ xs.index(1) }} {{ xs.count(3) }}
{{ xs.pop() }}
{{ d.update({'x': 1}) }}
{{ xs.sort() }}
{{ xs is defined }} {{ missing is defined }} {{ missing is undefined }} {{ d.x is defined }} {{ nil is defined }} {{ d.b is not defined }}
{{ s is string }} {{ n is string }} {{ n is number }} {{ f is number }} {{ yes is number }} {{ n is integer }} {{ yes is integer }} {{ f is float }} {{ yes is boolean }} {{ n is boolean }}
{{ nil is none }} {{ missing is none }} {{ yes is true }} {{ n is true }} {{ no is false }} {{ 1 is true }}
{{ xs is iterable }} {{ s is iterable }} {{ n is iterable }} {{ d is iterable }} {{ nil is iterable }} {{ missing is iterable }}
{{ xs is sequence }} {{ s is sequence }} {{ d is sequence }} {{ n is sequence }} {{ missing is sequence }} {{ nil is sequence }}
{{ d is mapping }} {{ xs is mapping }} {{ s is mapping }} {{ missing is mapping }}
{{ n is odd }} {{ n is even }} {{ n is divisibleby 7 }} {{ n is divisibleby(2) }}
{{ n is eq 7 }} {{ n is equalto(7) }} {{ n is ne 7 }} {{ n is gt 3 }} {{ n is lt 3 }} {{ n is ge 7 }} {{ n is le 7 }} {{ n is in [7] }} {{ 'ab' is lower }} {{ 'AB' is upper }} {{ n is sameas 7 }} {{ nil is sameas none }} {{ n is == 7 }}
{{ n is callable }} {{ raise_exception is callable }} {{ strftime_now is defined }} {{ range is defined }} {{ 'upper' is filter }} {{ 'nope' is filter }} {{ 'odd' is test }}
{{ not n is odd }} {{ n is not odd }} {{ n is odd and yes }} {{ n is odd or no }} {{ n is odd == true }}
{{ n is string is string }}
{{ s|trim }}| {{ 'xxaxx'|trim('x') }} {{ 5|trim }} [{{ missing|trim }}] {{ nil|trim }}
{{ xs|join }} {{ xs|join(', ') }} {{ mixed|join('-') }} {{ ms|join(',', attribute='role') }} {{ 'abc'|join('.') }} [{{ missing|join }}]
{{ xs|length }} {{ s|length }} {{ d|length }} {{ u|length }} {{ missing|length }} {{ ws|count }}
{{ n|length }}
{{ nil|length }}
{{ ms|selectattr('role', 'equalto', 'user')|list|length }} {{ ms|selectattr('role', '==', 'user')|map(attribute='content')|list }} {{ ms|rejectattr('role', 'eq', 'system')|list|length }} {{ ms|selectattr('tool_calls')|list|length }} {{ ms|selectattr('tool_calls', 'defined')|list|length }} {{ ms|selectattr('name', 'undefined')|list|length }} {{ ms|selectattr('role', 'in', ['user', 'tool'])|list|length }}
{{ xs|select('gt', 1)|list }} {{ xs|reject('odd')|list }} {{ mixed|select|list }} {{ mixed|reject|list }} {{ mixed|select('string')|list }}
{{ ms|map(attribute='role')|join(',') }} {{ ws|map('upper')|list }} {{ ms|map(attribute='name', default='-')|list }} {{ ms|map(attribute='tool_calls.0.type')|list|length }}
{{ xs|map('string')|join('+') }} {{ [' a ', 'b ']|map('trim')|list }} {{ ['a-b']|map('replace', '-', '_')|list }}
{{ xs|map('upper') }}
{{ xs|first }} {{ xs|last }} {{ s|first }}| {{ u|last }} [{{ empty|first }}] [{{ empty|last }}] [{{ missing|first }}]
{{ missing|default('x') }} {{ nil|default('x') }} {{ nil|default('x', true) }} {{ ''|default('x') }} {{ ''|default('x', boolean=true) }} {{ missing|d('y') }} [{{ missing|default }}] {{ 0|default(5) }}
{{ 'a-b-c'|replace('-', '+') }} {{ 'a-b-c'|replace('-', '+', 1) }} {{ n|replace('7', 'x') }}
{{ lines|indent }}!
{{ lines|indent(2) }}!{{ lines|indent(2, true) }}!{{ lines|indent(2, blank=true) }}!{{ lines|indent('> ') }}!{{ lines|indent(width=1, first=true) }}!{{ 'a\n'|indent(2) }}!
{% for k, v in d|dictsort %}{{ k }}={{ v }} {% endfor %} {{ {'B': 2, 'a': 3, 'c': 1}|dictsort }} {{ {'B': 2, 'a': 3}|dictsort(true) }} {{ {'b': 2, 'a': 3}|dictsort(false, 'value') }} {{ {'b': 2, 'a': 3}|dictsort(reverse=true) }} {{ {'b': 2, 'a': 3}|dictsort(by='value') }}
{{ xs|sort }} {{ ws|sort }} {{ ws|sort(case_sensitive=true) }} {{ xs|sort(reverse=true) }} {{ ms|sort(attribute='role')|map(attribute='role')|list }}
{{ mixed|sort }}
{{ ws|unique|list }} {{ [1, 2, 1]|unique|list }} {{ ['a', 'A']|unique|list }}
{{ u|upper }} {{ u|lower }} {{ w|capitalize }} {{ w|title }} {{ n|upper }} {{ 'ab-cd (ef'|title }}
{{ '42'|int }} {{ '4.7'|int }} {{ 'x'|int }} {{ 'x'|int(9) }} {{ 4.9|int }} {{ ' 5 '|int }} {{ nil|int }} {{ yes|int }} {{ '0x1f'|int(base=16) }} {{ -4.9|int }} {{ missing|int }}
{{ '4.5'|float }} {{ 'x'|float }} {{ 3|float }} {{ '1e3'|float }} {{ 'x'|float(1.5) }}
{{ n|string }} {{ nil|string }} {{ xs|string }} {{ yes|string|lower }} {{ n|string + 'x' }} {{ d|string|length }}
{{ s|safe|trim }} {{ '<a>'|escape }} {{ '<a>'|e }}
{{ s|list|length }} {{ d|list }} {{ 'añ'|list }} {{ (1, 2)|list }} {{ missing|list }} {{ range(3)|list }}
{{ n|list }}
{{ xs|reverse|list }} {{ 'abc'|reverse }} {{ xs|sum }} {{ [1.5, 2]|sum }} {{ ms|sum(attribute='x', start=0) }}
{{ xs|sum }} {{ xs|min }} {{ xs|max }} {{ -3|abs }} {{ neg|abs }} {{ 2.567|round }} {{ 2.567|round(2) }} {{ 2.5|round }} {{ 3.5|round }} {{ 2.1|round(0, 'ceil') }} {{ 2.9|round(method='floor') }} {{ 7|round }}
{{ xs|batch(2)|list }} {{ xs|slice(2)|list }} {{ 'a b c'|wordcount }} {{ 'abcdef'|truncate(3, true, '') }} {{ 'a'|center(5) }}|
{{ ms|groupby('role')|length }}
{{ 'a%20b /é'|urlencode }} {{ '<b>x</b>'|striptags }} {{ 1000|filesizeformat }}
{{ ms[2]|attr('role') }}|{{ s|attr('upper') }}
{{ '%s-%s'|format('a', 1) }}
{{ d|tojson }} {{ u|tojson }} {{ nil|tojson }} {{ yes|tojson }} {{ f|tojson }} {{ 1.0|tojson }} {{ 1e22|tojson }} {{ xs|tojson }} {{ "<&>'\u2028/"|tojson }} {{ '\x01\x7f\t'|tojson }}
{{ d|tojson(indent=2) }}
{{ d|tojson(indent=4) }} {{ empty|tojson(indent=4) }} {{ nodict|tojson(indent=2) }} {{ [[], {}]|tojson(indent=1) }}
{{ d|tojson(ensure_ascii=true) }} {{ u|tojson(true) }} {{ u|tojson(ensure_ascii=True, indent=0) }}
{{ d|tojson(separators=(',', ':')) }} {{ d|tojson(sort_keys=true) }} {{ d|tojson(indent=2, separators=(', ', ' = ')) }} {{ d|tojson(indent='\t') }} {{ {'b': {'z': 1, 'y': 2}, 'a': 1}|tojson(sort_keys=true) }}
{{ missing|tojson }}
{{ {1: 2, none: 3, true: 4, 1.5: 5}|tojson }} {{ (1, 2)|tojson }}
{{ ms|map(attribute='role')|tojson }}
{{ range(3)|list }} {{ range(1, 4)|list }} {{ range(5, 0, -2)|list }} {{ range(0)|list }} {{ range(3)[1] }} {{ range(3)|length }}
{{ range(0, 5, 0) }}
{{ range(3) }}
{{ dict(a=1, b=2) }} {{ dict({'x': 1}, y=2) }} {{ dict() }}
{{ dict([('a', 1)]) }}
{{ cycler('a', 'b').next() }}
{{ joiner(',')() }}
{{ lipsum() }}
{{ raise_exception('boom') }}
{% if no %}{{ raise_exception('boom') }}{% endif %}fine
{{ namespace(a=1).a }}
{{ (s|trim).upper() }} {{ s.strip().split(',')[0] }} {{ s|trim|upper|replace('L', '1')|length }}
{{ a + b | upper }}
{{ 'a' + 'b' | upper }} {{ ('a' + 'b') | upper }} {{ -1|abs }} {{ 1 + 2|string|length }} {{ not ''|length }}
{{ ms|map(attribute='content')|map('trim')|select|join('/') }}
{{ ms[0]['role'] == 'system' and ms[0].content is string and not ms[0].tool_calls }} {{ ms[2].tool_calls[0].function.arguments|tojson }} {{ ms[0].content.split('  ') }}
{{ (ms[-1].role == 'user') != (ms|length % 2 == 0) }} {{ (ms|length - 1) ~ '' }}
{{ ms[0].role ~ ':' ~ ms[0].content ~ '\n' }}|{{ ms[0]['role'] + '\n' }}
{% for m in ms %}{% if loop.first and m.role == 'system' %}S{% elif loop.last %}L{% elif m.role == 'user' and not loop.last %}U{% else %}{{ loop.index0 % 2 }}{% endif %}{% endfor %}
{% for m in ms[::-1] %}{{ loop.revindex }}{{ m.role }} {% endfor %}
{% set ns = namespace(last=-1) %}{% for m in ms %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}{{ ns.last }}
{% if 'name' in ms[3] %}{{ ms[3].name }}{% endif %}{% if ms[0].tool_calls %}x{% endif %}{% if ms[0]['tool_calls'] is defined %}y{% endif %}
{{ ms[3].content|tojson }} {{ ms[2]|tojson }} {{ ms[2].tool_calls|tojson(indent=2) }}
{%- if yes -%} x {%- else -%} y {%- endif %} z
{{ 1 if }}
{{ }}
{{ 'unterminated }}
{% if yes %}
{% endif %}
{% for x xs %}{% endfor %}
{{ x
{# open
{{ a b }}
{{ (1 }}
{{ [1 }}
{{ 1 + }}
{{ s| }}
{{ s is }}
{{ @ }}
{{ d. }}
{{ n.5 }}
{% set true = 1 %}
{% set s. = 1 %}
{% else %}
{% if yes %}1{% else %}2{% else %}3{% endif %}
{% endfor %}
{% macro m(a=1, b) %}{% endmacro %}
{{ m(a=1, 2) }}
{{ s.upper }}
{{ s.upper(1) }}
{{ s.strip(1) }}
{{ s.split(1) }}
{{ n.bit_length() }}
{{ nil() }}
{{ 'a'() }}
{{ self }}
{{ self.b() }}
{{ loop }}
{% for x in xs %}{{ loop }}{% endfor %}
{% for x in xs %}{{ loop.foo }}{% endfor %}
{% for loop in xs %}{{ loop }}{% endfor %}
{% for x in xs %}{{ x }}{% else %}{{ loop.index }}{% endfor %}
{% for x in xs %}{% for y in ws %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}
{% for x in xs %}{% set outer = loop %}{% for y in [1] %}{{ outer.index }}{{ loop.length }}{% endfor %}{% endfor %}
{% set x = 1 %}{% for i in xs %}{{ x }}{% set x = 5 %}{{ x }}{% endfor %}{{ x }}
{% set x = 1 %}{% if yes %}{% set x = 2 %}{% endif %}{{ x }}
{% for x in xs %}{% if loop.first %}{% set t = 'T' %}{% endif %}[{{ t }}]{% endfor %}
{% set x = n %}{% set n = 9 %}{{ x }}{{ n }}
{{ n }}{% set n = 9 %}{{ n }}
{% set x = [1, 2] %}{% set y = x %}{{ x is sameas y }} {{ [1] is sameas [1] }}
{{ d.b is defined and d.b is not none }} {{ d.b is defined and d.b }} {{ 'content' in ms[0] and ms[0].content }}
{{ ms[0] }}
{{ [1, 2, 3][1:] | length }} {{ 'abc'[1] }} {{ 'abc'[-1:] }} {{ ('a', 'b')[::-1] }}
{{ (1 if yes else 2) + 1 }} {{ 'a' if yes else 'b' ~ 'c' }} {{ 'a' ~ 'b' if no else 'c' }}
{{ -n }} {{ - n }} {{ --n }} {{ -f }} {{ +yes }} {{ -yes }} {{ not not n }}
{{ yes + yes }} {{ yes * 3 }} {{ 5 - no }} {{ yes / 2 }}
{{ 10 ** 20 }}
{{ 1.0 * 3 }} {{ 3.0 // 2 }} {{ 2.0 ** 2 }} {{ 10 / 4 }} {{ 1 / 3 }} {{ 1e15 * 10 }} {{ 1.0e-5 }} {{ 0.0001 }} {{ -0.0 }}
{{ n ~ f }} {{ f|string }} {{ 100000000000000000.0 }} {{ 3.14159265358979 }} {{ f|int }}
{{ 'A' 'B' ~ 'C' }} {{ 'x' in ['x', 'y'] and 'z' not in 'abc' }}
{{ "multi
line" }}
{{ d.c }} {{ d['c']|upper }} {{ d | length }} {{ d|list|join(',') }} {{ d.keys()|join(',') }} {{ d.items()|first }}
{{ [[1, 2], [3]]|map('first')|list }} {{ [[1, 2], [3]]|map('length')|list }} {{ [3, 1]|map('string')|map('int')|sum }}
{{ [{'a': {'b': 1}}, {'a': {'b': 2}}]|map(attribute='a.b')|list }} {{ [{'a': {'b': 1}}]|selectattr('a.b', 'gt', 0)|list }} {{ [[5, 6]]|map(attribute=1)|list }}
{{ 'x'|default }} {{ ['x']|map('default', 'y')|list }} {{ missing|default(missing2)|default('z') }} {{ (missing|default({})).x|default('w') }}
{{ missing is string }} {{ missing is number }} {{ missing ~ 'x' }} {{ missing|upper }}| {{ missing|string }}| {{ missing in xs }} {{ missing is sameas missing }} {{ missing|list }} {{ [missing] }} {{ missing|replace('a', 'b') }}|
{{ missing[0] }}
{{ missing() }}
{{ missing * 2 }}
{{ -missing }}
{{ missing|int + 1 }} {{ missing|float }} {{ missing|abs }}
{{ xs[1.0] }}
{{ xs['0'] }}|{{ xs['a'] }}|{{ s['x'] }}|{{ n['x'] }}|{{ n[0] }}
{{ xs[true] }} {{ xs[nil] }}|
{{ xs[missing] }}|
{{ xs.length }}|{{ s.length }}|{{ d.length }}
{{ d[n] }}|{{ d[xs] }}|
{{ d[nil] }}|{{ {none: 1}[nil] }}
{{ 'ß'.upper() }} {{ 'İ'.lower()|length }} {{ 'ﬁ'.upper() }} {{ 'ΑΣ'.lower() }} {{ 'ǆ'.upper() }} {{ 'ŉ'.upper() }} {{ 'ß'.title() }} {{ 'ß'|capitalize }}
{{ '\u3000 x\u00a0'|trim }}|{{ '\u200bx\u200b'.strip() }}|{{ '\x1cx\x1f'.strip() }}|{{ 'a\u2003b\x85c'.split() }}|{{ 'a\x0bb\x0cc\u2028d\r\ne\x1cf'.splitlines() }}
{{ '٣'.isdigit() }} {{ '²'.isdigit() }} {{ '½'.isnumeric() }} {{ '٣'.isdecimal() }} {{ '٣'|int }} {{ '1_000'|int }} {{ ' +5 '|int }} {{ '1e3'|int }} {{ 'inf'|float }} {{ 'nan'|float }} {{ '1_0.5'|float }}
{{ ['\u200b', '\xa0', '\xad', '\ue000', '\u2028', '👋', '\x7f'] }}
{{ [1.0, -0.0, 1e100, 'a'] }} {{ [missing, nil] }} {{ {'a': missing} }}
{{ "a" if true }}{{ "b" if false }}
{{ ms|length > 2 }} {{ ms | length - 1 }} {{ (ms | length) - 1 == 3 }} {{ loop is defined }} {{ ms|last is mapping }}
{{ xs|join(n) }} {{ xs|join(d=', ') }} {{ ws|join(',')|upper }} {{ ms|map(attribute='zz')|join(',') }}
{{ xs|tojson|safe }} {{ xs|tojson|length }} {{ ('x'|tojson) ~ 'y' }} {{ 'a"b'|tojson|tojson }}
{{ n|tojson(indent=nil) }} {{ [9007199254740993, 1e-7, 123456789012345680.0]|tojson }} {{ [1, [2, {'a': [3]}]]|tojson(indent=1) }}
{{ 'a' is in ['a'] }} {{ 'a' is in 'abc' }} {{ 3 is in xs }} {{ n is none }} {{ n is not none and n is number }}
{{ 'a' is defined(1) }}
{{ trim(s) }}
{{ s|trim() }}| {{ xs|join() }} {{ xs | first | string | length }} {{ s|trim(chars=' ') }}| {{ s|trim(none)|length }}
{{ ''.join(['a', 'b'])|upper }} {{ ','.join(d) }} {{ ' '.join(w.split()) }} {{ '-'.join('abc') }}
{{ s.count('l') }} {{ s.find('W') }} {{ s.find('l', 6) }} {{ s.replace('l', 'L', 2).strip() }} {{ w.split('-', maxsplit=1) }}
{{ s.strip().lower().replace(',', '').split(' ')|join('_') }}
{{ 'Hello'.join('ab') }} {{ 'a'.__len__() }}
{{ 'a\r\nb' }}|
a<tab>{% if true %} b{% endif %}
{{ [x for x in xs] }}
{{ lambda x: x }}
{{ xs and not no }} {{ 1 if xs and d else 0 }} {{ xs == [3, 1, 2] and d != {} }}
{{ d is eq d }} {{ 'abc' is eq('abc') }} {{ 5 is greaterthan 3 }} {{ 5 is lessthan 3 }} {{ 5 is > 3 }}
{{ [1,2]|contains(1) }}
{{ 'a,b'.split(',') | map('upper') | join('|') }} {{ xs | map('float') | list }} {{ ws|map('upper')|first }}
{{ (xs|map('string'))[0] }}
{{ xs|select('odd')|length }}
{{ xs|select('odd')|first }} {{ xs|reject('odd')|join }} {% for x in xs|select('odd') %}{{ x }}{{ loop.last }}{% endfor %}
{% set g = xs|map('string') %}{{ g|join }}{{ g|join }}|{% set h = ms|selectattr('name') %}{{ h|list|length }}{{ h|list|length }}
{% if xs|select('gt', 100) %}truthy{% else %}falsy{% endif %}
{% for i in range(3) %}{{ i }}{% if not loop.last %}, {% endif %}{% endfor %} {% for i in range(2, 0, -1) %}{{ i }}{% endfor %}
{% for k, v in d.a[1].items() %}{{ k }}={{ v }}{% endfor %} {% for m in ms if m.role != 'system' %}{{ loop.index0 }}{{ m.role }} {% endfor %}
{% for m in ms if m.role != 'system' and not loop.first %}{{ m.role }}{% endfor %}
{% for i, (a, b) in [(1, (2, 3))] %}{{ i }}{{ a }}{{ b }}{% endfor %} {% set (p, q) = (1, 2) %}{{ p }}{{ q }}
{% call m() %}{% endcall %}
{% macro tool(t, depth=0) -%} {{ '  ' * depth }}{{ t.v }} {%- for k in t.kids %}{{ '\n' ~ tool(k, depth + 1) }}{% endfor -%} {%- endmacro %}{{ tool(tree) }}
{% macro m(x) %}{% if x is string %}s{% elif x is mapping %}m{% elif x is iterable %}i{% endif %}{% endmacro %}{{ m('') }}{{ m({}) }}{{ m([]) }}|{{ m(1) }}|
{% macro m() %}  x  {% endmacro %}[{{ m()|trim }}]{{ m() ~ 'y' }}{{ m()|length }}{{ m() is string }}{{ m() + 'z' }}{{ 'z' + m() }}
{{ m.name }}{% macro m(a, b) %}{% endmacro %}{{ m.name }}{{ m.arguments }}
{% set x = 'a' %}{% set x = x + 'b' %}{% set x = x ~ 1 %}{{ x }} {% set l = [] %}{% set l = l + [1] %}{{ l }}
{% if yes and (n > 5 or no) and not (nil is not none) %}ok{% endif %}{% if yes == true %}eq{% endif %}{% if n == 7.0 %}num{% endif %}
{{ n if n else 'z' }}{{ nil or 'w' }}{{ nil if nil is not none else 'v' }}
{%if yes%}tight{%endif%}{{n}}{{-n}}{%-if no-%}x{%-else-%}y{%-endif-%}
{{ 'caf\u0065\u0301' | length }} {{ '👨‍👩‍👧' | length }} {{ '👋🏽'[0] }} {{ '👋a'[1:] }}
{{ dict({'a': 1}, **{'b': 2}) }} {{ dict(**d) }} {% set ns = namespace(**{'x': 1}) %}{{ ns.x }} {{ dict(a=1, **{}) }}
{% macro m(a, b=2) %}{{ a }}{{ b }}{{ kwargs }}{% endmacro %}{{ m(1, **{'b': 3}) }} {{ m(**{'a': 1, 'c': 4}) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(a=1, **{'a': 2}) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(**missing) }}
{{ dict(**xs) }}
{{ dict(**{1: 2}) }}
{{ dict(**{'a': 1}, b=2) }}
{{ dict(**{'a': 1}, **{'b': 2}) }}
{{ s|trim(**{'chars': ' '}) }}| {{ '42' is eq(**{}) }}
{% macro m() %}{{ kwargs }}{% endmacro %}{{ m(**{'x': n}) }}{% set n = 5 %}{{ m(**{'x': n}) }}
{% if no %}{{ s|nope }}{% set x = s|nope|upper %}{% elif yes %}y{% else %}{{ s|nope }}{% endif %}
{% if yes %}{{ s|nope }}{% endif %}
{% if no %}{% for x in xs %}{{ x|nope }}{% endfor %}{% endif %}
{% if no %}{% for x in xs %}{% if x %}{{ x|nope }}{% endif %}{% endfor %}{% endif %}ok
{% if no %}{% for x in xs|nope %}{% endfor %}{% endif %}ok
{% if no %}{% filter nope %}{% endfilter %}{% endif %}ok
{% if no %}{% set x | nope %}{% endset %}{% endif %}ok
{% if no %}{% macro m(a=s|nope) %}{% endmacro %}{% endif %}ok
{% if no %}x{% endif %}{{ s|nope }}
{{ s|nope if no else 1 }}
{% for x in empty %}{{ '%c'|format(x) }}{{ x|batch(2) }}{% endfor %}ok
{{ 'a' + ('b'|safe) }} {{ ('b'|safe) + 'c' }} {{ ('b<'|safe) + ('>c'|safe) }} {{ ('[' + (d|length|string|safe) + ']')|trim }}
{{ '<' + ('b'|safe) }}
{{ ('b'|safe) + '"' }}
{{ ('b'|safe) + 1 }}
{{ {'a': 1}|tojson(indent=-1) }} {{ {'a': 1}|tojson(indent=100)|length }}
{{ [1]|tojson(indent=101)|length }}
{{ 'x' ~ ([1, '<b>']|tojson|safe) ~ '<' ~ (s|safe) }} {{ (d|tojson|safe) ~ '' }} {{ '<' + (d|tojson|safe) + '\'">&' }} {{ (('a'|safe) ~ 'b') + '<' }}
{{ ('ab<'|safe)[1] }}{{ ('ab<'|safe)[1:] + '<' }}{{ ('ab<'|safe)[9] }}{{ ('ab<'|safe)[-1] + '<' }} {{ 'b' in ('abc'|safe) }} {{ ('b'|safe) in 'abc' }} {{ ('b'|safe) in d }} {{ d['b'|safe] }} {{ ('a'|safe) < 'b' }}
{{ ('a<'|safe)|upper + '<' }} {{ ('a<'|safe)|title + '<' }} {{ ('a<b'|safe)|replace('<', '>') + '<' }} {{ ['a'|safe, '<']|join('<'|safe) }} {{ '-'.join(['a'|safe, '<']) + '<' }} {{ 'a<b'.split('<'|safe) }} {{ 'abc'.replace('b', '<'|safe) + '<' }}
{{ '<a>'|escape }} {{ '<a>'|e|e }} {{ ('<a>'|safe)|e + '&' }} {{ nil|e }}{{ missing|e }} {{ n|e }} {{ '<' ~ ('<'|e) }} {{ ['<'|safe, 'A']|sort|join }} {{ ['a'|safe, 'A']|unique|join }}
{{ 'a{}b{}c'.format(1, 'z') }} {{ '{1}{0}{1}'.format('a', none) }} {{ '{x}-{}'.format(7, x=[1, 'a']) }} {{ '{{{}}}'.format(true) }} {{ '{!s}|{0!s}'.format(2.0) }}
{{ '{!s}|{!s}'.format(2.0, d) }} {{ '{{}}'.format() }} {{ '[{}]'.format(missing) }} {{ '{}'.format('<'|safe) + '<' }} {{ '{}'.format(1, 2) }}
{{ '{}'.format() }}
{{ '{0}{}'.format(1, 2) }}
{{ '{}{0}'.format(1, 2) }}
{{ '{x}'.format(1) }}
{{ '{'.format(1) }}
{{ '}'.format(1) }}
{{ '{}}'.format(1) }}
{{ '{0.x} {0[b]}'.format(d) }}
{{ '{:>5}|{:.2f}'.format('a', 1.5) }}
{{ '{!r}'.format('a') }}
{{ '%s is %d%%, %c%c' % ('a', 3.7, 'z', 128075) }} {{ '%s' % 'a' }} {{ '%s' % [1] }} {{ '%d' % true }} {{ '%s' % nil }} {{ '%s-%s'|format('a', 1) }} {{ '%c'|format(8364) }} {{ '%%'|format() }}
{{ '%s %s' % 'a' }}
{{ '%s' % ('a', 'b') }}
{{ 'a' % 'b' }}
{{ '%d' % 'a' }}
{{ '%c' % 'ab' }}
{{ '%s' % (1, 2) }}
{{ '%s'|format({}, 1) }}
{{ 'a'|format({}) }}
{{ '%5d|%-3s' % (1, 'a') }}
{{ '%(a)s' % {'a': 1} }}
{{ '%' % 1 }}
{% if no %}{{ s is nope }}{% elif yes %}y{% else %}{{ s is nope(1) }}{% endif %}
{{ s is nope }}
{{ 1 if s is nope else 2 }}
{{ 1 if yes else s is nope }} {{ s is nope if no else 2 }} {{ (s|nope)|upper if no }}|
{{ [s|nope if no else 1, 2] }} {{ s|nope }}
{% if no or (s is nope) %}x{% endif %}
{% if yes %}a{% elif s|nope %}b{% endif %}
{% if s|nope %}x{% endif %}
{% if no %}{% for x in xs if x is nope %}{% endfor %}{% endif %}ok
{% for x in empty if x is nope %}{% endfor %}ok
{% if no %}{% with y = s|nope %}{% endwith %}{% endif %}ok
{% if no %}{% with y = 1 %}{{ s|nope }}{% endwith %}{% endif %}ok
{% macro m() %}{{ caller() }}{% endmacro %}{% if no %}{% call m(s|nope) %}{% endcall %}{% endif %}ok
{% if no %}{{ nope(1) }}{{ s.nope() }}{{ s|map('nope')|list }}{% endif %}ok
{{ nope(1) }}
{% if no %}{{ xs|select('nope')|list }}{% endif %}{{ xs|select('nope')|list }}
""".strip("\n").split("\n")

# Those of several lines: whitespace around blocks, comments and line ends.
BLOCKS = [
    "{{ s }}\n", "a\n\n", "\n{{ n }}\n\n", "{% if yes %}\na\n{% endif %}\nb\n", "  {% if yes %}\n  a\n  {% endif %}\nb", "x {% if yes %}\n  a\n  {% endif %}\nb",
    "{# c #}\na\n  {# d #}\n  b", "{% set x = 1 %}\n\n{{ x }}\n  {{ x }}  \n", "{%- set x = 1 -%}\n\n  a", "a\n  {%- if yes %}\n b {%- endif %}\n c",
    "a\n\t{% if yes %}\tb{% endif %}\t\nc", "{% for x in xs %}\n  {{ x }}\n{% endfor %}", "{% for x in xs -%}\n  {{ x }}\n{%- endfor %}\n", "{{ n }}\n{{ n }}\n\n{{- n }}",
    "a\r\nb\r\n{% if yes %}\r\nc{% endif %}\r\n", "a\rb", "{%+ if yes %}a{% endif %}", "  {%+ if yes %}a{% endif %}\n  b", "{% if yes +%}\na{% endif %}", "{% if yes %}  \na{% endif %}",
    "{{ '\n' }}x", "{%- for m in ms %}\n    {{- '<' + m.role + '>\n' + m.content | trim + '</>' }}\n{%- endfor %}\n{{- 'end' }}\n",
    "{% raw %}\n  a {{ b }}\n{% endraw %}\nc", "{% macro m() %}\n  a\n{% endmacro %}\n{{ m() }}b", "{% set x %}\n a\n{% endset %}\n[{{ x }}]", "{{ {\n 'a': 1,\n 'b': [\n 2]\n} }}",
    "{%\n  if yes\n%}a{%\n endif\n%}", "{#- a -#}\n\n x \n{#- b #}\n y", "a {# b #} c\n", "a {# b #}\nc", "{% generation %}\n a\n{% endgeneration %}\nb", "\ufeffa", "a\x00b{{ n }}", "a \x0b{% if yes %}b{% endif %}",
    "\u00a0{% if yes %}b{% endif %}", "a\u00a0{%- if yes %}b{% endif %}", "a\n   \n  {% if yes %}b{% endif %}", "a\u2028  {% if yes %}b{% endif %}", "  {{ n }}", "x\n  {{ n }}\n  {# c #}{{ n }}",
    "  {% if yes %}{% if yes %}a{% endif %}  {% endif %}", "{{ n }}  {% if yes %}a{% endif %}", "  {% raw %}a{% endraw %}", "{% if yes %}\n\n\na{% endif %}", "{{ n -}}\n\n{{- n }}", "{{ n +}}", "{{+ n }}", "{{ n -}}{% if yes %} a{% endif %}",
    "{% if yes -%}\n  {#- c -#}\n  a{% endif %}", "{{ xs[\n0] }}", "{{ 'a' # no comment\n }}", "{% if yes %}a{% endif %}{# x #}\n{% if yes %}b{% endif %}\n",
]


def render(template):
    try:
        return _compile_jinja_template(template).render(**json.loads(json.dumps(CONTEXT)))
    except Exception:
        return None


cases = []
for template in [s.replace("<tab>", "\t") for s in SNIPPETS] + BLOCKS:
    text = render(template)
    if text is not None and (" at 0x" in text or "lipsum" in template):
        continue  # addresses of Python objects, and random words
    cases.append({"template": template, "text": text} if text is not None else {"template": template, "error": True})

VALUES = ["", 1, True, 1.5, [], (), {}, range(3), {}.keys(), {}.values(), {}.items(), (x for x in [])]
members = {type(v).__name__: [m for m in dir(v) if not m.startswith("__")] for v in VALUES}
out = json.dumps({"context": CONTEXT, "members": members, "cases": cases}, ensure_ascii=False, indent=0)
Path(__file__).with_name("snippets.json").write_text(out + "\n", encoding="utf-8", newline="")
print(len(cases), "snippets,", sum("error" in c for c in cases), "errors,", len(out), "bytes")
