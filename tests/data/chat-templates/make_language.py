#!/usr/bin/env python3
"""Makes language.json: small templates with what jinja2, set up as transformers does it, prints for them.

    tests/data/chat-templates/make_language.py > tests/data/chat-templates/language.json
"""
import copy
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "scripts"))
from compare_templates import DATE, Language, environment  # noqa: E402

GROUPS = {
    "white space": [
        "a\n  {% if true %}\n  b\n  {% endif %}\nc\n", "a\n  {%+ if true %}b{% endif +%}\nc", "  {{ 1 }}  \n{{ 2 }}\n", "x \n {%- if true -%} \n y \n{%- endif -%}\n z",
        "{# c #}\na{#- c -#}\nb  {# c #}  \nc", "  {# c #}\nx", "a\r\nb\rc\n", "\n\na\n\n", "{% raw %}{{ x }}{% y %}{# z #}{% endraw %}", "a\n  {% raw -%}\n {{ }} {%- endraw %}\nb",
        "{{- 1 -}}  {{+ 2 }}", "{% set x = 1 %}\n\n{{ x }}", "{%- set x = 1 -%}  {{ x }}  {%- set y = 2 %}  {{ y }}", "{{ '}}' }}{{ {'a': {'b': 1}} }}", "{% if true %}a{% else %}b{% endif %}\n",
        "\u3000{%- if true %}\u00a0x{% endif -%}\u2003y", "\t{% if true %}\tx\t{% endif %}\t", "{#-#}a{#+ #} b", "{%\nset x\n=\n1\n%}{{\nx\n}}",
    ],
    "literals": [
        r"{{ 'a\n\t\\\'\"\x41\u00e9\U0001F600\101\d\é' }}", "{{ \"it's\" 'and' \"more\" }}", "{{ 1_000 }} {{ 0x1F }} {{ 0o17 }} {{ 0b101 }} {{ 1.5 }} {{ 1e3 }} {{ 1.5e-7 }} {{ 00 }}",
        "{{ [1, 'a', none, true, 2.0, [], {}, ()] }}", "{{ (1,) }}{{ () }}{{ (1, 2) }}{{ 1, 2 }}", "{{ {'a': 1, 2: [3], none: true, (1, 2): 'x'} }}", "{{ {1: 'a', true: 'b', 1.0: 'c'} }}",
        "{{ true }}{{ True }}{{ false }}{{ none }}{{ None }}", "{{ 'a\\\nb' }}", "{{ [1, 2,] }}{{ {'a': 1,} }}", "{{ 'tab\\tquote\\'both\" \\u200b\\x7f' |list }}", "{{ ['\\u2028', '\\u00a0', '\\x00', 'é', '😀', \"'\"] }}",
    ],
    "numbers": [
        "{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 // -2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }}", "{{ 7 / 2 }} {{ 4 / 2 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 0.0 / 1 }}", "{{ 2 ** 10 }} {{ 2 ** 3 ** 2 }} {{ 2 ** -1 }} {{ -2 ** 2 }} {{ 2.0 ** 0.5 }}",
        "{{ 1 + 2 * 3 - 4 }} {{ (1 + 2) * 3 }} {{ -(-3) }} {{ +5 }} {{ - 3 | abs }}", "{{ 0.1 + 0.2 }} {{ 1e16 }} {{ 1e15 }} {{ 123456789012345680.0 }} {{ 0.0001 }} {{ 0.00001 }} {{ 1e22 }} {{ -0.0 }} {{ 5e-324 }} {{ 1.7976931348623157e308 }}",
        "{{ true + 1 }} {{ true == 1 }} {{ 1 == 1.0 }} {{ 1 < 1.5 }} {{ 9007199254740993 == 9007199254740992.0 }} {{ 9007199254740993 > 9007199254740992.0 }}", "{{ 3 * 'ab' }} {{ [1] * 2 }} {{ 'x' * 0 }} {{ 'x' * -1 }} {{ (1, 2) * 2 }}",
        "{{ 2.5|round }} {{ 3.5|round }} {{ 2.675|round(2) }} {{ 42|round }} {{ 1250|round(-2) }} {{ 2.4|round(0, 'ceil') }} {{ 2.55|round(1, 'floor') }} {{ 1e300|round(2) }}", "{{ '42'|int }} {{ '4.9'|int }} {{ 'x'|int }} {{ 'x'|int(7) }} {{ 'ff'|int(0, 16) }} {{ ' 1_0 '|int }} {{ 3.9|int }} {{ none|int }}",
        "{{ '1.5'|float }} {{ 'x'|float }} {{ '1e3'|float }} {{ 'inf'|float }} {{ '-nan'|float }} {{ 3|float }}", "{{ 1/3 }} {{ 1e100 }} {{ 100.0 }} {{ 1e-5|string }} {{ 9223372036854775807 }}",
    ],
    "strings": [
        "{{ 'a' + 'b' ~ 1 ~ none ~ [2] ~ missing }}", "{{ 'Wörld'|length }} {{ 'Wörld'[1] }} {{ 'Wörld'[::-1] }} {{ 'Wörld'[-3:-1] }} {{ '😀é'[0] }}|{{ 'abc'[5:] }}|{{ 'abc'[10] }}|", "{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a b c'.split(' ', 1) }} {{ 'a b c '.split(none, 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' a b  c '.rsplit(none, 1) }}",
        "{{ 'aXbX'.replace('X', '-') }} {{ 'aaa'.replace('a', 'b', 2) }} {{ 'ab'.replace('', '.') }} {{ 'ab'|replace('a', 'z') }} {{ 5|replace(5, 6) }}", "[{{ '  x '.strip() }}] [{{ 'xxaxx'.strip('x') }}] [{{ '\\n x\\n'.lstrip('\\n') }}] [{{ 'ééa'.lstrip('é') }}] [{{ 'a  '|trim }}]",
        "{{ 'HeLLo wÖrld'.title() }} {{ 'hELLO'.capitalize() }} {{ 'aB'.swapcase() }} {{ 'ß ŉ ﬁ İ ΑΣ'.upper() }} {{ 'İ ΑΣ ΑΣΑ Σ'.lower() }} {{ 'ǆ ß'.title() }} {{ 'it\\'s a-b (c) [d]'|title }} {{ 'ß'.casefold() }}",
        "{{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'bc')) }} {{ 'abcabc'.find('c') }} {{ 'abcabc'.rfind('c') }} {{ 'éabc'.find('b') }} {{ 'abc'.find('z') }} {{ 'aaa'.count('a') }} {{ 'abc'.count('') }} {{ 'abc'.startswith('b', 1) }} {{ 'abcabc'.index('c', 3) }}",
        "{{ '-'.join(['a', 'b']) }} {{ ['a', 1, none]|join }} {{ [1, 2]|join(', ') }} {{ [{'n': 'x'}, {'n': 'y'}]|join('/', attribute='n') }} {{ 'abc'|join('.') }}", "{{ 'a-b-c'.partition('-') }} {{ 'a-b-c'.rpartition('-') }} {{ 'abc'.partition('-') }} {{ 'a\\nb\\r\\nc\\x0bd'.splitlines() }} {{ 'a\\nb'.splitlines(true) }}",
        "{{ '%s|%r|%5d|%-5d|%05.1f|%x|%%|%c' % ('a', 'a', 3, 3, 2.25, 255, 'z') }} {{ '%(a)s' % {'a': 1} }} {{ '%s' % 'one' }} {{ '%d' % 3.9 }} {{ '%.2s' % 'abc' }} {{ '%e %g %g' % (1.5, 1e10, 0.0001) }}", "{{ '{} {1} {a}'.format(1, 2, a=3) if false else '{} {}'.format('x', 2) }} {{ '{0:>5}|{0:<5}|{0:^5}|{0:*^7}'.format('ab') }} {{ '{:,} {:.2f} {:+d} {:#x} {:08.3f} {:%}'.format(1234567, 2.5, 3, 255, 2.5, 0.25) }} {{ '{a[k]} {a.k} {b[0]}'.format(a={'k': 1}, b=[2]) }} {{ '{!r} {{}}'.format('x') }}",
        "{{ 'abc'.isalpha() }} {{ '12'.isdigit() }} {{ '²'.isdigit() }} {{ '²'.isdecimal() }} {{ ''.isalpha() }} {{ 'aB'.isupper() }} {{ 'AB'.isupper() }} {{ ' '.isspace() }} {{ 'Ab Cd'.istitle() }} {{ 'a1'.isalnum() }} {{ 'é'.isascii() }}", "{{ 'ab'.center(7, '*') }} {{ 'abc'.center(6) }}| {{ 'ab'.ljust(4) }}| {{ 'ab'.rjust(4) }} {{ '-5'.zfill(4) }} {{ 'ab'|center(6) }}|", "{{ 'removeprefix'.removeprefix('remove') }} {{ 'a\\tb'.expandtabs(4) }} {{ 'foo bar baz'|wordcount }} {{ 'a long text that is cut'|truncate(10) }} {{ 'a long text'|truncate(8, true, '~', 0) }}",
        "{{ 'l1\\nl2\\n\\nl3'|indent }} {{ 'a\\nb'|indent(2, true) }} {{ 'a\\n\\nb'|indent('> ', blank=true) }}", "{{ 'a' in 'abc' }} {{ 'z' not in 'abc' }} {{ '' in 'a' }} {{ 'a' < 'b' }} {{ 'é' > 'z' }} {{ 'a' == 'a' }}", "{{ '<b>&\"'|e }} {{ ('<'|safe) + '>' }} {{ '<'|safe ~ '>' }} {{ 'x<'|e|e }} {{ ('<a>'|safe).upper() + '<' }}", "{% for c in 'aé😀' %}[{{ c }}]{% endfor %}{{ 'aé'|list }}{{ 'abc'|first }}{{ 'abc'|last }}{{ 'abc'|reverse }}",
    ],
    "containers": [
        "{{ d.x }} {{ d['y'] }} {{ d['items'] }} {{ d.nope is defined }} {{ d.get('x') }} {{ d.get('nope') }} {{ d.get('nope', 'dflt') }}",
        "{{ d.keys()|list }} {{ d.values()|list }} {{ d.items()|list }} {{ d.keys() }} {{ d.items() }}", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }},{% endfor %}{% for k, v in d|items %}{{ k }}{% endfor %}", "{{ d|dictsort }} {{ d|dictsort(reverse=true) }} {{ {'b': 1, 'A': 2}|dictsort }} {{ {'b': 1, 'A': 2}|dictsort(true) }} {{ {'b': 1, 'a': 2}|dictsort(by='value') }}",
        "{{ l[0] }} {{ l[-1] }} {{ l[1:] }} {{ l[::-1] }} {{ l[::2] }} {{ l[5] is defined }} {{ l[-5:5] }} {{ l.0 }} {{ (1, 2, 3)[1:] }} {{ range(10)[2:8:3] }}", "{{ [1, 2] + [3] }} {{ [1] == [1.0] }} {{ [1, 2] < [1, 3] }} {{ (1, 2) == [1, 2] }} {{ {'a': 1} == {'a': 1.0} }} {{ 1 in [1.0] }} {{ 'x' in d }} {{ none in [none] }}", "{{ range(3) }} {{ range(1, 4)|list }} {{ range(5, 0, -2)|list }} {{ range(0) }} {{ range(3)|length }} {{ 2 in range(3) }}", "{{ dict(a=1, b=2) }} {{ dict([('x', 1)]) }} {{ dict({'a': 1}, b=3) }}", "{{ o|map(attribute='k')|list }} {{ o|selectattr('k')|map(attribute='i')|list }} {{ o|rejectattr('k', 'undefined')|list|length }} {{ o|selectattr('i', 'gt', 1)|list|length }} {{ [1, 0, 2]|select|list }} {{ [1, 2, 3]|select('odd')|list }} {{ [1, 2]|reject('eq', 1)|list }} {{ ['a', 'b']|map('upper')|join }} {{ o|map(attribute='q', default='-')|list }}",
        "{{ [3, 1, 2]|sort }} {{ ['b', 'A', 'c']|sort }} {{ ['b', 'A']|sort(case_sensitive=true) }} {{ o|sort(attribute='i')|map(attribute='i')|list }} {{ [3, 1]|sort(reverse=true) }} {{ [1, 1, 2]|unique|list }} {{ ['a', 'A', 'b']|unique|list }}", "{{ [1, 2, 3]|sum }} {{ o|sum(attribute='i') }} {{ [1, 5, 3]|max }} {{ ['b', 'A']|min }} {{ []|max is defined }} {{ [1, 2]|first }} {{ []|first is defined }} {{ [1, 2]|last }} {{ [1, 2]|reverse|list }} {{ 'abc'|length }} {{ d|count }}", "{{ [1, 2, 3]|batch(2)|list }} {{ [1, 2, 3]|batch(2, 'x')|list }} {{ [1, 2, 3, 4]|slice(3)|list }} {{ [1, 2, 3, 4]|slice(3, 'x')|list }}", "{% set g = [1, 2]|map('string') %}{{ g|list }}{{ g|list }}", "{{ x.a.b[1].d }} {{ x['a']['b'][0] }} {{ x.a.nope is undefined }}",
    ],
    "tojson": [
        "{{ d|tojson }}", "{{ o|tojson(indent=2) }}", "{{ 'ä\"\\\\/\\n\\x01\\x7f\\u2028😀<>&'|tojson }} {{ 'ä😀'|tojson(ensure_ascii=true) }}", "{{ {'b': 1, 'a': [1.0, none, true]}|tojson(sort_keys=true) }} {{ {'a': 1, 'b': [1, 2]}|tojson(separators=(',', ':')) }}", "{{ {1: 2, none: 3, true: 4, 1.5: 5}|tojson }} {{ (1, 2)|tojson }} {{ []|tojson(indent=1) }} {{ {}|tojson(indent=1) }} {{ [[1], {}]|tojson(indent='--') }}", "{{ 1e16|tojson }} {{ 0.1|tojson }} {{ 'inf'|float|tojson }} {{ 12345678901234567|tojson }}", "{{ '{\"a\": [1, 2.5, null]}'|from_json }}",
    ],
    "tests": [
        "{{ 1 is defined }} {{ missing is defined }} {{ missing is undefined }} {{ none is none }} {{ 'a' is string }} {{ 1 is number }} {{ true is number }} {{ true is integer }} {{ 1.0 is float }} {{ true is boolean }} {{ 1 is true }} {{ false is false }}", "{{ d is mapping }} {{ l is mapping }} {{ l is sequence }} {{ d is sequence }} {{ 'a' is sequence }} {{ 1 is iterable }} {{ 'a' is iterable }} {{ missing is iterable }} {{ range is callable }} {{ 3 is odd }} {{ 4 is even }} {{ 6 is divisibleby 3 }} {{ 6 is divisibleby(4) }}", "{{ 'a' is lower }} {{ 'A' is upper }} {{ 1 is eq 1 }} {{ 1 is ne(2) }} {{ 3 is gt 2 }} {{ 1 is in [1, 2] }} {{ 1 is not in [1] }} {{ none is sameas none }} {{ 1 is sameas true }} {{ 'x' is equalto 'x' }} {{ 'upper' is filter }} {{ 'odd' is test }} {{ not 1 is none }}", "{{ 1 < 2 < 3 }} {{ 1 < 3 > 2 }} {{ 1 < 2 > 5 }} {{ not true and false }} {{ true or missing.x }} {{ false and missing.x }} {{ '' or 'b' }} {{ 'a' and 'b' }} {{ 0 or none }}", "{{ 'a' if true }}|{{ 'a' if false }}|{{ 'a' if false else 'b' if true else 'c' }}|{{ ('x' if false) is undefined }}", "{{ missing }}|{{ missing == nope }} {{ missing == none }} {{ [missing] }} {{ missing|default('d') }} {{ ''|default('d') }} {{ ''|default('d', true) }} {{ none|default('d') }} {{ missing|length }} {{ missing|list }} {{ 'a' in missing }} {{ missing ~ 'x' }}",
    ],
    "statements": [
        "{% for x in [1, 2, 3] %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }}{{ loop.depth }};{% endfor %}", "{% for x in [] %}a{% else %}empty{% endfor %}{% for x in [1] %}a{% else %}empty{% endfor %}{% for x in missing %}a{% else %}u{% endfor %}", "{% for x in [1, 2, 3, 4] if x is even %}{{ loop.index }}:{{ x }}/{{ loop.length }} {% endfor %}", "{% for x in range(10) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in [1, 2] %}{% continue %}{% else %}all skipped{% endfor %}", "{% for a, b in [(1, 2), [3, 4]] %}{{ a }}-{{ b }} {% endfor %}{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{% endfor %}", "{% set tree = [{'n': 'a', 'c': [{'n': 'b', 'c': []}]}, {'n': 'c', 'c': []}] %}{% for t in tree recursive %}{{ loop.depth }}{{ t.n }}[{{ loop(t.c) }}]{% endfor %}", "{% set x = 0 %}{% for i in [1, 2] %}{{ x }}{% set x = i %}{{ x }}{% endfor %}{{ x }}", "{% set ns = namespace(n=0) %}{% for i in [1, 2, 3] %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}{{ ns }}", "{% set a, b = 1, (2, 3) %}{{ a }}{{ b }}{% set x %}body {{ a }}{% endset %}[{{ x }}]{% set y | upper %}abc{% endset %}{{ y }}", "{% if false %}{% set v = 1 %}{% endif %}{{ v }}|{% if true %}{% set v = 2 %}{% endif %}{{ v }}", "{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, c=3) }} {{ m(b=5, a=4) }} {{ m() }}", "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, k=3) }}", "{% macro box(t) %}[{{ t }}:{{ caller('x') }}]{% endmacro %}{% call(v) box('T') %}body {{ v }}{% endcall %}", "{% macro a(n) %}{% if n > 0 %}{{ n }}{{ a(n - 1) }}{% endif %}{% endmacro %}{{ a(5) }}", "{% set g = 1 %}{% macro m() %}{{ g }}{% set g = 5 %}{{ g }}{% endmacro %}{{ m() }}{{ g }}{% set g = 2 %}{{ m() }}", "{% filter upper|replace('A', '4') %}banana{% endfilter %}", "{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a is defined }}", "{% generation %}x{% set q = 1 %}{% endgeneration %}{{ q is defined }}", "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{% set j = joiner('|') %}{{ j() }}x{{ j() }}y{{ j() }}z", "{{ strftime_now('%Y-%m-%d %d %b %Y %A %j %%') }}", "{% for i in [1, 2] %}{% for j in [1, 2] %}{{ loop.index }}{{ i }}{% endfor %}{{ loop.index }}{% endfor %}", "{% set ns = namespace() %}{% set ns.a = 1 %}{% set ns.b = [ns.a] %}{{ ns.b }}{{ ns.c is defined }}{{ namespace({'x': 1}, y=2).y }}", "{% if 0 %}a{% elif '' %}b{% elif [0] %}c{% else %}d{% endif %}", "{{ m is defined }}{% macro m() %}x{% endmacro %}{{ m is defined }}{{ m.name }}",
    ],
    "errors": [
        "{{ missing.x }}", "{{ missing() }}", "{{ missing + 1 }}", "{{ none.x.y }}", "{{ 'a' + 1 }}", "{{ 1 + 'a' }}", "{{ 1 < 'a' }}", "{{ 1 / 0 }}", "{{ 1 // 0 }}", "{{ [1, 2] | nofilter }}", "{{ 1 is notest }}", "{{ {} | tojson(x=1) }}", "{{ missing | tojson }}", "{{ l.append(1) }}", "{{ d.update({}) }}", "{{ raise_exception('stop here') }}", "{{ 'abc'.nomethod() }}", "{% for x in 5 %}{% endfor %}", "{% for a, b in [(1, 2, 3)] %}{% endfor %}", "{% set d.x = 1 %}", "{% macro m() %}{% endmacro %}{{ m(1) }}", "{% macro m() %}{% endmacro %}{{ m(z=1) }}", "{{ range(1000000) }}", "{{ n[1:] }}", "{{ {[]: 1} }}", "{{ (1).x.y }}", "{{ [1]|join.x.y }}", "{{ 'a'|int.x.y }}", "{{ o|map(attribute='k')|length }}", "{{ none|length }}", "{{ '%d' % 'x' }}", "{{ '%s %s' % (1,) }}", "{{ -'a' }}", "{{ 1 in 5 }}", "{{ 5 in 'abc' }}", "{{ ''.split('') }}", "{{ [1, 'a']|sort }}", "{{ ''.__class__.__mro__ }}",
        "{% if %}", "{% endif %}", "{% if true %}", "{{ 1 + }}", "{{ (1 }}", "{{ 'abc }}", "{% unknown %}", "{# never closed", "{{ a b }}", "{% for x %}{% endfor %}", "{% set true = 1 %}", "{{ 1 is odd is even }}", "{% break %}", "{{ f(a=1, 2) }}", "{{ ! }}", "{% macro m(a=1, b) %}{% endmacro %}", "{{ }}", "{% raw %}x", "{{ [1, 2 }}", "{{ {1} }}", "{% set x %}", "{% call 5 %}{% endcall %}", "{{ a.'b' }}", "{% include 'x' %}", "{% extends 'x' %}", "{% import 'x' as y %}",
    ],
}


def main():
    env = environment()
    groups = {}
    for group, templates in GROUPS.items():
        groups[group] = []
        for template in templates:
            try:
                expected = {"text": env.from_string(template).render(**copy.deepcopy(Language.VARIABLES))}
            except Exception as error:
                expected = {"error": f"{type(error).__name__}: {error}"}
            if ("error" in expected) != (group == "errors"):
                sys.exit(f"{template}: {expected}")
            groups[group].append({"template": template, **expected})
    json.dump({"date": DATE, "variables": Language.VARIABLES, "groups": groups}, sys.stdout, ensure_ascii=False, indent=1)
    print()


if __name__ == "__main__":
    main()
