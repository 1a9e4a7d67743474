#pragma once
// Python's operators on values. Whole numbers have 64 bits; a result that needs more is an error.

#include "src/chat/ast.h"
#include "src/chat/runtime.h"

namespace llm::jinja {

Value apply(Runtime& runtime, BinaryOp op, const Value& a, const Value& b);
Value negate(const Value& value);
Value plus(const Value& value);
/// a == b, a < b, a in b …
bool compare(Runtime& runtime, CompareOp op, const Value& a, const Value& b);
/// needle in container
bool contains(Runtime& runtime, const Value& needle, const Value& container);

/// a ~ b ~ …: all as text, one after the other; never markup.
Value concatenate(Runtime& runtime, const std::vector<Value>& parts);
/// Appends text; escaped for HTML if it joins markup and is none itself.
void append_joined(TextBuilder& out, const Text& text, bool into_markup);
/// & < > ' " as HTML entities; markup stays as it is.
Text escape_html(const Text& text);

/// "%s and %d" % arguments. values: a tuple, a dict or a single value.
Text format_percent(Runtime& runtime, const Text& format, const Value& values);
/// "{} and {name}".format(arguments)
Text format_braces(Runtime& runtime, const Text& format, const Arguments& arguments);

}  // namespace llm::jinja
