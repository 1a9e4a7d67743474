// Errors say which template, which line, and what.

#include "tests/src/chat/support.h"

namespace llm::test {
namespace {

using ggmlx::ErrorKind;

ErrorKind kind_of(const std::string& source) {
    try {
        render(source);
    } catch (const ggmlx::Error& error) {
        return error.kind();
    }
    ADD_FAILURE() << "no error: " << source;
    return ErrorKind::Io;
}

TEST(Errors, NameTemplateLineAndMessage) {
    EXPECT_EQ(error_of("a\n{% if true %}\n{{ raise_exception('Only user: and\nassistant!') }}{% endif %}"),
              "test:3: Only user: and\nassistant!");
    EXPECT_EQ(error_of("\n\n{{ missing.x }}"), "test:3: 'missing' is undefined");
    EXPECT_EQ(error_of("{{ {'a': 1}.b.c }}"), "test:1: 'dict object' has no attribute 'b'");
    EXPECT_EQ(error_of("{{ [1][4].x }}"), "test:1: list object has no element 4");
    EXPECT_EQ(error_of("{{ 'a' +\n 1 }}"), "test:1: can only concatenate str (not \"int\") to str");
    EXPECT_EQ(error_of("\n{{ [].append(1) }}"), "test:2: access to attribute 'append' of 'list' object is unsafe.");
    EXPECT_EQ(error_of("{% macro m(a) %}\n{{ a.b.c }}\n{% endmacro %}\n{{ m({}) }}"),
              "test:2: 'dict object' has no attribute 'b'");
    EXPECT_EQ(error_of("{{ 1 / 0 }}"), "test:1: division by zero");
}

TEST(Errors, OfTheSyntaxNameTheLineToo) {
    EXPECT_EQ(error_of("a\n{% for x in y %}\nb"),
              "test:3: the template ends, but the block of line 2 still needs "
              "endfor or else");
    EXPECT_EQ(error_of("\n{{ 1 + }}"), "test:2: unexpected end of print statement");
    EXPECT_EQ(error_of("{{ x|nope }}"), "test:1: there is no filter named 'nope'");
    EXPECT_EQ(error_of("\n{% wat %}"), "test:2: unknown tag 'wat'");
    EXPECT_EQ(error_of("a\n{{ 'b }}"), "test:2: a string is never closed (with ')");
    EXPECT_EQ(error_of("{{ 99999999999999999999 }}"),
              "test:1: the number 99999999999999999999 is too large (64 bits at most)");
    EXPECT_EQ(kind_of("{{ 1 + }}"), ErrorKind::CorruptFile);
    EXPECT_EQ(kind_of("{{ 1 + 'a' }}"), ErrorKind::InvalidArgument);
}

TEST(Errors, WhatIsLeftOutIsRefusedByName) {
    for (const char* tag : {"include 'x'", "extends 'x'", "import 'x' as y", "from 'x' import y", "block b"})
        EXPECT_EQ(kind_of(std::string("{% ") + tag + " %}"), ErrorKind::Unsupported) << tag;
    EXPECT_EQ(error_of("\n{% include 'x' %}"), "test:2: {% include %} is not supported in chat templates");
    EXPECT_EQ(error_of("{{ x|groupby('a') }}"), "test:1: the filter 'groupby' is not supported in chat templates");
    EXPECT_EQ(error_of("{{ 'x'.encode() }}"), "test:1: the method 'encode' of 'str' is not supported in templates");
}

TEST(Errors, AnUnknownFilterInsideOfAnIfIsNoErrorUntilUsed) {
    EXPECT_EQ(render("{% if false %}{{ x|nope }}{% endif %}{{ x|nope if false else 'a' }}"), "a");
    EXPECT_EQ(error_of("{% if true %}{{ 1|nope }}{% endif %}"), "test:1: there is no filter named 'nope'");
}

TEST(Errors, NumbersBeyond64BitsAreRefused) {
    EXPECT_EQ(error_of("{{ 9223372036854775807 + 1 }}"),
              "test:1: the result is too large a whole number (64 bits at most)");
    EXPECT_EQ(error_of("{{ x }}", {{"x", 18446744073709551615u}}),
              "test:1: the number 18446744073709551615 is too large (64 bits at most)");
}

TEST(Errors, IllFormedTextBecomesReplacementCharacters) {
    EXPECT_EQ(render("a\xFF{{ x }}", {{"x", "b\xC3"}}), "a\uFFFDb\uFFFD");
}

}  // namespace
}  // namespace llm::test
