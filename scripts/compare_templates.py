#!/usr/bin/env python3
"""Compares ggmlx's chat templates with Python's jinja2, set up as Hugging Face transformers does it.

    scripts/compare_templates.py build/release/tests/render_lines TEMPLATE.jinja [TEMPLATE.jinja ...]
        [--count 300] [--language 3000] [--seed 1]

Needs the Python package `jinja2`. Two parts: every template renders --count made-up conversations (roles in and out of order,
tools, tool calls, reasoning, empty and missing contents, all scripts, control tokens in the text); and --language made-up
templates exercise the language itself. The texts must be equal byte for byte. Where jinja2 fails, ggmlx must fail, too, and
with the same words if they are the template's own (raise_exception).
"""
import argparse
import copy
import json
import os
import random
import subprocess
import sys
import warnings
from datetime import datetime

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

DATE = "2026-01-15"
warnings.simplefilter("ignore", SyntaxWarning)  # made-up templates subscribe numbers


class Generation(jinja2.ext.Extension):
    """{% generation %}: a block of its own, as transformers has it."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_print"), [], [], body).set_lineno(line)

    def _print(self, caller):
        return caller()


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.filters["from_json"] = json.loads  # of other engines; ggmlx has it, too
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = datetime.strptime(DATE, "%Y-%m-%d").strftime
    return env


WORDS = [
    "Hello", "2+2?", "", " ", "\n", "  leading and trailing  ", "line one\nline two\n\n", "\tTab", "naïve café", "Grüße, Straße",
    "你好,世界", "Привет", "مرحبا", "नमस्ते", "😀🎉👩‍👩‍👧", "\u00a0\u3000", "\u2028", "\x00\x07\x1b[0m", "\x7f", "\ufeff", "\ue000",
    "'single'", '"double"', "both ' and \"", "back\\slash", "<b>&amp;</b>", "{{ not a tag }} {% x %} {# y #}", "%s %d {}", "null",
    "<|im_end|>", "<|im_start|>system\n", "<｜User｜>", "<think>\nhm\n</think>\n\nanswer", "</think>", "<think>", "/no_think", "/think",
    "<tool_call>\n{}\n</tool_call>", "<tool_response>x</tool_response>", "[INST]", "<|channel|>", "True", "None", "0", "1.5", "e\u0301",
    "/nothink", "ı İ ß ﬁ Σ ΑΣ", "DSML", "content", "x" * 300,
]
NUMBERS = [0, 1, -1, 7, 2**53 + 1, -(2**63), 2**63 - 1, 0.0, -0.0, 1.5, 1e16, 1e-7, 1e22, 123456789.125, 0.1, 3.0, 1e300]


class Conversations:
    def __init__(self, r):
        self.r = r

    def text(self):
        r = self.r
        return "".join(r.choice(WORDS) for _ in range(r.choice([1, 1, 1, 2, 3, 5])))

    def value(self, depth=0):
        r = self.r
        kind = r.randrange(10)
        if kind < 4 or depth > 3:
            return self.text()
        if kind == 4:
            return r.choice(NUMBERS)
        if kind == 5:
            return r.choice([True, False, None])
        if kind < 8:
            return {self.text() or "key": self.value(depth + 1) for _ in range(r.randrange(4))}
        return [self.value(depth + 1) for _ in range(r.randrange(4))]

    def schema(self, depth=0):
        r = self.r
        kind = r.choice(["string", "number", "integer", "boolean", "object", "array", "enum", "union", "oneOf", "any"])
        schema = {"description": self.text()} if r.random() < 0.7 else {}
        if kind == "object" and depth < 3:
            schema = self.parameters(depth + 1)
        elif kind == "array" and depth < 3:
            schema.update(type="array", items=self.schema(depth + 1))
        elif kind == "enum":
            schema.update(type="string", enum=[r.choice(["a", "b", "ç", "x y"]) for _ in range(3)])
        elif kind == "union":
            schema["type"] = ["string", "null"]
        elif kind == "oneOf" and depth < 3:
            schema["oneOf"] = [self.schema(depth + 1) for _ in range(2)]
        elif kind != "any":
            schema["type"] = kind if kind not in ("object", "array", "oneOf") else "string"
        if r.random() < 0.2:
            schema["default"] = r.choice(["d", 1, None, True, 2.5, ["a"]])
        if r.random() < 0.1:
            schema["nullable"] = True
        return schema

    def parameters(self, depth=0):
        r = self.r
        names = r.sample(["city", "unit", "größe", "when", "Zeta", "alpha", "items"], r.randrange(5))
        schema = {"type": "object", "properties": {name: self.schema(depth) for name in names}}
        if r.random() < 0.7:
            schema["required"] = [name for name in names if r.random() < 0.5]
        return schema

    def tool(self):
        r = self.r
        function = {"name": r.choice(["get_weather", "search", "run"]), "description": self.text(), "parameters": self.parameters()}
        if r.random() < 0.1:
            function["strict"] = True
        if r.random() < 0.1:
            del function["parameters"]
        return {"type": "function", "function": function} if r.random() < 0.95 else function

    def tool_call(self, number):
        r = self.r
        arguments = {name: self.value() for name in r.sample(["city", "unit", "x"], r.randrange(4))}
        call = {"name": r.choice(["get_weather", "search"]), "arguments": arguments if r.random() < 0.8 else json.dumps(arguments)}
        if r.random() < 0.1:
            return call
        return {"id": f"call{number:05}" if r.random() < 0.8 else "c1", "type": "function", "function": call}

    def content(self):
        r = self.r
        if r.random() < 0.95:
            return self.text()
        return r.choice([None, [], [{"type": "text", "text": self.text()}], [{"type": "text", "text": self.text()} for _ in range(2)]])

    def message(self, role, number):
        r = self.r
        message = {"role": role, "content": self.content()}
        if role == "assistant":
            if r.random() < 0.3:
                message["tool_calls"] = [self.tool_call(number + i) for i in range(r.choice([1, 1, 2]))]
                if r.random() < 0.3:
                    message["content"] = ""
            for key in ("reasoning_content", "thinking", "reasoning"):
                if r.random() < 0.2:
                    message[key] = self.text()
        if role == "tool":
            message["tool_call_id"] = f"call{number - 1:05}"
            if r.random() < 0.5:
                message["name"] = "get_weather"
        if r.random() < 0.02:
            message.pop("content")
        return message

    def roles(self):
        r = self.r
        if r.random() < 0.2:
            return [r.choice(["system", "user", "assistant", "tool", "developer", "ipython", "odd"]) for _ in range(r.randint(1, 6))]
        roles = [r.choice(["system", "developer"])] if r.random() < 0.4 else []
        for _ in range(r.randint(1, 4)):
            roles += ["user", "assistant"] + (["tool"] * r.choice([1, 1, 2]) + ["assistant"] if r.random() < 0.3 else [])
        return roles if r.random() < 0.3 else roles[:-1]

    def variables(self):
        r = self.r
        messages = [self.message(role, i) for i, role in enumerate(self.roles())]
        for before, after in zip(messages, messages[1:]):
            if after["role"] == "tool" and before["role"] == "assistant" and "tool_calls" not in before:
                before["tool_calls"] = [self.tool_call(1)]
        variables = {"messages": messages, "tools": [self.tool() for _ in range(r.randint(1, 3))] if r.random() < 0.4 else None,
                     "documents": None, "add_generation_prompt": r.random() < 0.7,
                     "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
        for name in ("enable_thinking", "thinking", "clear_thinking", "preserve_thinking", "drop_thinking"):
            if r.random() < 0.25:
                variables[name] = r.random() < 0.5
        if r.random() < 0.1:
            variables["reasoning_effort"] = r.choice(["low", "high", "max"])
        if r.random() < 0.1:
            variables["builtin_tools"] = r.sample(["browser", "python", "code_interpreter"], 2)
        if r.random() < 0.05:
            variables["model_identity"] = self.text()
        return variables


class Language:
    """Made-up templates over a few variables of every kind."""
    VARIABLES = {"s": "Hello, Wörld", "t": "  a,b ,c\n", "e": "", "n": 7, "m": -3, "f": 2.5, "b": True, "z": None,
                 "l": [3, 1, 2], "w": ["b", "A", "c", "a"], "d": {"x": 1, "y": [1, "two", None], "items": "shadowed", "B": 2.0},
                 "o": [{"k": "v1", "i": 2}, {"k": "v0", "i": 1, "q": None}, {"i": 3}], "x": {"a": {"b": ["c", {"d": "deep"}]}}}
    NAMES = list(VARIABLES) + ["missing", "range(4)", "namespace(a=1)", "loop"]
    LITERALS = ["'a'", '"q\'"', "''", "'\\n'", "'a' 'b'", "1", "0", "-2", "3.0", "1e3", "1_000", "0x1f", "true", "false", "none", "[]", "{}", "()",
                "[1, 'a', none]", "(1, 2)", "(1,)", "{'a': 1, 'b': [2]}", "[[1, 2], [3, 4]]", "{1: 'i', true: 'b', 'k': 'v'}"]
    BINARY = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
    FILTERS = ["abs", "batch(2)|list", "batch(2, 'f')|list", "capitalize", "center(9)", "count", "d", "default('D')", "default('D', true)",
               "dictsort", "dictsort(true, 'value')", "dictsort(reverse=true)", "e", "escape", "first", "float", "float(1.5)", "format(1, 'x')",
               "indent", "indent(2, true)", "indent('> ', blank=true)", "int", "int(9)", "int(0, 16)", "items|list", "join", "join(', ')",
               "join('-', attribute='k')", "last", "length", "list", "lower", "map('upper')|list", "map(attribute='k')|list",
               "map(attribute='q', default='?')|list", "map('default', 'x')|list", "max", "min", "max(attribute='i')", "reject('none')|list",
               "reject|list", "rejectattr('q')|list", "replace('a', 'o')", "replace('l', 'L', 1)", "reverse|list", "round", "round(1)",
               "round(1, 'floor')", "round(0, 'ceil')", "safe", "select('string')|list", "select|list", "selectattr('k')|list",
               "selectattr('i', '>', 1)|list", "selectattr('k', 'equalto', 'v1')|list", "selectattr('k', 'in', ['v0'])|list",
               "selectattr('q', 'defined')|list", "slice(2)|list", "slice(3, 'f')|list", "sort", "sort(reverse=true)", "sort(case_sensitive=true)",
               "sort(attribute='i')", "string", "sum", "sum(attribute='i')", "sum(start=10)", "title", "tojson", "tojson(indent=2)",
               "tojson(sort_keys=true)", "tojson(ensure_ascii=true)", "tojson(separators=(',', ':'))", "trim", "trim('Hd')", "truncate(5)",
               "truncate(6, true, '..', 0)", "unique|list", "upper", "wordcount", "reverse", "items", "string|length", "list|last"]
    TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "true", "false", "mapping", "iterable",
             "sequence", "callable", "odd", "even", "divisibleby 2", "divisibleby(3)", "lower", "upper", "eq 1", "ne('a')", "gt 2", "lt 2", "ge 7",
             "in [1, 'a', 7]", "in('abc')", "sameas none", "sameas true", "equalto 'a'", "escaped", "filter", "test"]
    METHODS = ["upper()", "lower()", "strip()", "lstrip()", "rstrip()", "strip('Ha,')", "split()", "split(',')", "split(',', 1)", "rsplit(',', 1)",
               "split('l')[0]", "splitlines()", "replace('l', 'L')", "replace('', '-')", "startswith('He')", "endswith(('d', 'x'))", "find('l')",
               "rfind('l')", "count('l')", "title()", "capitalize()", "swapcase()", "zfill(15)", "center(15, '*')", "ljust(14)", "rjust(14, '.')",
               "isdigit()", "isalpha()", "isupper()", "istitle()", "isspace()", "partition(',')", "rpartition(',')", "join(['a', 'b'])",
               "removeprefix('He')", "removesuffix('ld')", "format(1, a=2)", "items()", "keys()", "values()", "get('x')", "get('nope', 5)",
               "items()|list", "keys()|list", "index('o')", "copy()", "a", "k", "0", "items", "x", "length", "upper", "append(1)", "expandtabs(4)",
               "casefold()", "isalnum()", "isascii()"]
    SLICES = ["[0]", "[-1]", "[1:]", "[:-1]", "[::-1]", "[::2]", "[5:1:-2]", "['x']", "['nope']", "[-3:]", "[1:2]", "[none:2]", "[100]", "[:100]", "[b]"]
    FORMATS = ["'%s and %r' % (s, s)", "'%d%%' % n", "'%05.1f|%-6s|%+d' % (f, 'x', n)", "'%(x)s' % d", "'%x %X %o %e %g' % (255, 255, 8, f, f)",
               "'{} {:>5} {:^7}|'.format(n, 'ab', 'mid')", "'{0}{1}{0}'.format('a', n)", "'{a[x]} {b.k}'.format(a=d, b=o[0])",
               "'{:,} {:.2f} {:08.3f} {:e} {:%}'.format(1234567, f, f, f, f)", "'{:*<6}{!r}'.format(n, s)", "'%s' % missing", "'%s%s' % (1,)",
               "'{:{}}'.format(s, 20)", "'%c%c' % (65, 'b')", "'%5d|%-5d|%05d' % (n, m, m)", "'%.3s' % s", "'%s' % [1]", "'{{}}'.format()"]

    def __init__(self, r):
        self.r = r
        self.inner = []

    def atom(self):
        r = self.r
        return r.choice(r.choice([self.NAMES, self.NAMES, self.LITERALS, self.inner or self.NAMES]))

    def expression(self, depth=0):
        r = self.r
        kind = r.randrange(14) if depth < 3 else 0
        deeper = depth + 1
        if kind < 2:
            return self.atom()
        if kind < 5:
            return f"{self.expression(deeper)} {r.choice(self.BINARY)} {self.expression(deeper)}"
        if kind == 5:
            return f"({self.expression(deeper)})"
        if kind < 8:
            return f"{self.atom()}|{r.choice(self.FILTERS)}"
        if kind == 8:
            return f"{self.atom()}.{r.choice(self.METHODS)}"
        if kind == 9:
            return f"{r.choice(self.NAMES)}{r.choice(self.SLICES)}"  # jinja2 folds those of literals by other rules
        if kind == 10:
            return f"{self.atom()} is {r.choice(['', 'not '])}{r.choice(self.TESTS)}"
        if kind == 11:
            return f"({self.expression(deeper)} if {self.expression(deeper)}" + (f" else {self.expression(deeper)})" if r.random() < 0.8 else ")")
        if kind == 12:
            return r.choice([f"not {self.expression(deeper)}", f"-{self.atom()}", f"[{self.expression(deeper)}, {self.expression(deeper)}]",
                             f"({self.expression(deeper)})|{r.choice(self.FILTERS)}", f"{self.expression(deeper)} < {self.atom()} <= {self.atom()}"])
        return r.choice(self.FORMATS)

    def tag(self, inside):
        r = self.r
        return r.choice(["{%", "{%", "{%-", "{%+"]) + f" {inside} " + r.choice(["%}", "%}", "-%}", "+%}"])

    def block(self, depth=0):
        r = self.r
        kind = r.randrange(14) if depth < 3 else r.randrange(4)
        tag, expression = self.tag, self.expression
        if kind < 3:
            return r.choice(["{{ ", "{{- "]) + expression() + r.choice([" }}", " -}}"])
        if kind == 3:
            return r.choice(["text", " \n", "\n\n", "  ", "\t", "{# note #}", "{#- note -#}\n", "{% raw %} {{ x }} {% endraw %}\n", " x ", "\r\n"])
        if kind == 4:
            return (tag(f"if {expression()}") + self.body(depth) + (tag(f"elif {expression()}") + self.body(depth) if r.random() < 0.4 else "")
                    + (tag("else") + self.body(depth) if r.random() < 0.5 else "") + tag("endif"))
        if kind < 7:
            return self.loop(depth)
        if kind == 7:
            # Not of a variable that is passed in: jinja2 hides those from inner scopes if they are set after these.
            name = r.choice(["v", "u", "ns.a"])
            return tag(f"set {name} = {expression()}") + "{{ v }}{{ n }}"
        if kind == 8:
            return tag(f"set v{r.choice(['', '|upper', '|trim'])}") + self.body(depth) + tag("endset") + "{{ v }}"
        if kind == 9:
            return tag("set ns = namespace(a=0, c='')") + tag("for i in range(3)") + "{% set ns.a = ns.a + i %}" + self.body(depth) + tag("endfor") + "{{ ns.a }}"
        if kind == 10:
            call = r.choice(["mac(1)", "mac(s, q=n)", "mac(q=l, p=d)", "mac()", "mac(1, 2, 3)", "mac(1, zz=3)"])
            extra = r.choice(["", "{{ varargs }}", "{{ kwargs }}", "{{ caller() }}", "{{ p|default('none') }}"])
            definition = tag("macro mac(p, q='Q' ~ n)") + "[{{ p }}{{ q }}" + extra + self.body(depth) + "]" + tag("endmacro")
            return definition + (tag(f"call {call}") + self.body(depth) + tag("endcall") if "caller" in extra else "{{ " + call + " }}")
        if kind == 11:
            name = r.choice(["upper", "trim", "replace('a', 'b')|title", "length"])
            return tag(f"filter {name}") + self.body(depth) + tag("endfilter")
        if kind == 12:
            return tag(f"with v = {expression()}, u = n") + self.body(depth) + "{{ v }}" + tag("endwith")
        return tag("generation") + self.body(depth) + tag("endgeneration")

    def loop(self, depth):
        r = self.r
        target, items = r.choice([("i", None), ("i", None), ("k, v", "d.items()"), ("k, v", "x|items"), ("a, (c, g)", "[(1, (2, 3))]"),
                                  ("i", "o"), ("i", "range(5)"), ("i", "'añb'"), ("i", "o|sort(attribute='i')")])
        condition = r.choice(["", "", " if i", " if loop", " if i is defined and i != 1"]) if target == "i" else ""
        self.inner += ["loop.index", "loop.last", "loop.length", "loop.revindex0", "loop.cycle('a', 'b')", "loop.changed(n)", "loop.previtem",
                       "loop.nextitem", "loop.first", "loop.depth", "i", "k"]
        control = r.choice(["", "", "", "{% if loop.index > 2 %}{% break %}{% endif %}", "{% if loop.first %}{% continue %}{% endif %}"])
        text = (self.tag(f"for {target} in {items or self.expression(2)}{condition}") + control + self.body(depth)
                + (self.tag("else") + self.body(depth) if r.random() < 0.3 else "") + self.tag("endfor"))
        del self.inner[-12:]
        return text

    def body(self, depth):
        return "".join(self.block(depth + 1) for _ in range(self.r.choice([1, 1, 2])))

    def template(self):
        if self.r.random() < 0.6:
            return "{{ " + self.expression() + " }}"
        return "".join(self.block() + self.r.choice(["", "", "\n", " "]) for _ in range(self.r.choice([1, 1, 2, 4])))


def render(env, compiled, source, variables):
    """(text, None), or (None, the exception)"""
    try:
        if source not in compiled:
            compiled[source] = env.from_string(source)
        return compiled[source].render(**copy.deepcopy(variables)), None  # some filters of jinja2 change their input
    except Exception as error:  # every kind is a refusal
        return None, error


def difference(expected, error, ours):
    """None, or what differs."""
    if error is None:
        if "error" in ours:
            return f"fails: {ours['error']}\n    jinja2: {expected!r}"
        if ours["text"] != expected:
            at = next((i for i, (a, b) in enumerate(zip(ours["text"], expected)) if a != b), min(len(expected), len(ours["text"])))
            return f"differs from place {at} on: {ours['text'][max(0, at - 20):at + 40]!r}\n    jinja2: {expected[max(0, at - 20):at + 40]!r}"
        return None
    if "error" not in ours:
        return f"renders {ours['text']!r}\n    jinja2: {type(error).__name__}: {error}"
    if type(error) is jinja2.exceptions.TemplateError and not ours["error"].endswith(str(error)):
        return f"says {ours['error']!r}\n    jinja2: {error}"
    return None


# What the two are allowed to differ in: addresses of Python's objects, whole numbers over 64 bits, sizes that Python can
# hold and ggmlx refuses, and reprs of what only Python has.
def is_excused(expected, error, ours):
    refused = ours.get("error", "")
    if any(part in refused for part in ("64 bits at most", "too much memory", "runs too long", "'LoopContext' object is not iterable",
                                      "Can only get item pairs", "'dict_keys' and", "is no real number", "is not supported", "is over 4096")):
        return True
    if error is not None:
        return "Exceeds the limit" in str(error)
    return any(part in expected.lower() for part in (" at 0x", "<built-in"))


def compare(program, name, cases, env):
    """cases: [(source, variables)]. Returns whether all are equal."""
    lines = "".join(json.dumps({"source": s, "variables": v, "date": DATE}) + "\n" for s, v in cases)
    run = subprocess.run([program], input=lines, capture_output=True, text=True, encoding="utf-8")
    if run.returncode != 0:
        print(f"{name}: {run.stderr.strip() or run.returncode}")
        return False
    results = run.stdout.split("\n")[:-1]
    compiled, failures, errors, excused = {}, [], 0, 0
    for (source, variables), line in zip(cases, results, strict=True):
        ours = json.loads(line)
        expected, error = render(env, compiled, source, variables)
        errors += error is not None
        found = difference(expected, error, ours)
        if found and is_excused(expected, error, ours):
            excused += 1
        elif found:
            failures.append((source, variables, found))
    for source, variables, found in failures[:10]:
        what = repr(source) if len(source) < 1000 else json.dumps(variables, ensure_ascii=False)[:600]
        print(f"{name}: {what}\n    {found}")
    print(f"{name}: {len(cases)} renderings, {errors} of them refused, {excused} excused, {len(failures)} differ")
    return not failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("templates", nargs="*", metavar="TEMPLATE.jinja")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--language", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    env = environment()
    ok = True
    for path in arguments.templates:
        with open(path, encoding="utf-8") as file:
            source = file.read()
        conversations = Conversations(random.Random(arguments.seed))
        cases = [(source, conversations.variables()) for _ in range(arguments.count)]
        ok = compare(arguments.program, os.path.basename(path), cases, env) and ok
    language = Language(random.Random(arguments.seed))
    cases = [(language.template(), language.VARIABLES) for _ in range(arguments.language)]
    ok = compare(arguments.program, "language", cases, env) and ok
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
