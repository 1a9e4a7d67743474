#include "src/tokenizer/oniguruma.h"

#include <gtest/gtest.h>

#include "ggmlx/core/error.h"
#include "src/tokenizer/pattern.h"

namespace llm {
namespace {

TEST(Oniguruma, WhatBothReadAlikeStaysAsItIs) {
    for (const char* pattern : {"'s|'t| ?\\p{L}+|\\p{N}{1,3}", "(?i:'re)(?!\\d)", "[^\\r\\n]?(?<=a)b", "(?>a|b)*?",
                                "\\[\\^a\\]", "a{2,}?", "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]"})
        EXPECT_EQ(oniguruma_to_pcre2(pattern), pattern);
}

TEST(Oniguruma, DifferencesAreRewritten) {
    EXPECT_EQ(oniguruma_to_pcre2("\\s+(?!\\S)"), "[\\t-\\r\\x{85}\\p{Z}]+(?![^\\t-\\r\\x{85}\\p{Z}])");
    EXPECT_EQ(oniguruma_to_pcre2("[^\\s\\p{L}]"), "[^\\t-\\r\\x{85}\\p{Z}\\p{L}]");
    EXPECT_EQ(oniguruma_to_pcre2("\\p{Han}\\P{Han}\\p{^Han}"), "\\p{sc:Han}\\P{sc:Han}\\P{sc:Han}");
    EXPECT_EQ(oniguruma_to_pcre2("[\\p{L}&&[^\\p{Han}]]+"), "(?:(?![\\p{sc:Han}])[\\p{L}])+");
    EXPECT_EQ(oniguruma_to_pcre2("[a[bc]d]"), "[abcd]");
    EXPECT_EQ(oniguruma_to_pcre2("(?m:.)"), "(?s:.)");
    EXPECT_EQ(oniguruma_to_pcre2("\\h\\v"), "[0-9A-Fa-f]\\x0b");
    EXPECT_EQ(oniguruma_to_pcre2("\\p{N}{1,3}+"), "(?:\\p{N}{1,3})+");
    EXPECT_EQ(oniguruma_to_pcre2("(ab){,2}"), "(ab){0,2}");
    EXPECT_EQ(oniguruma_to_pcre2("x{y}"), "x\\{y}");
    EXPECT_EQ(oniguruma_to_pcre2("\\u4e2d\\x41"), "\\x{4e2d}\\x{41}");
}

void expect_refused(const std::string& pattern, ggmlx::ErrorKind kind, const std::string& named) {
    try {
        oniguruma_to_pcre2(pattern);
        ADD_FAILURE() << pattern << " was accepted";
    } catch (const ggmlx::Error& e) {
        EXPECT_EQ(e.kind(), kind) << pattern;
        EXPECT_NE(std::string(e.what()).find("'" + named + "'"), std::string::npos) << e.what();
    }
}

TEST(Oniguruma, WhatHasNoCounterpartIsRefusedByName) {
    const auto unsupported = ggmlx::ErrorKind::Unsupported;
    expect_refused("\\w+", unsupported, "\\w");
    expect_refused("a\\b", unsupported, "\\b");
    expect_refused("[\\W]", unsupported, "\\W");
    expect_refused("[\\S]", unsupported, "\\S");
    expect_refused("[[:alpha:]]", unsupported, "[:");
    expect_refused("[a[^b]]", unsupported, "[^…] inside a class");
    expect_refused("[a&&b]", unsupported, "&& other than [X&&[^Y]]");
    expect_refused("[^a&&[^b]]", unsupported, "&& other than [X&&[^Y]]");
    expect_refused("\\p{Alnum}", unsupported, "\\p{Alnum}");
    expect_refused("(?<name>a)", unsupported, "(?<");
    expect_refused("(?~a)", unsupported, "(?~");
    expect_refused("(?x: a)", unsupported, "(?x");
    expect_refused("a{3}?", unsupported, "{3}?");
    expect_refused("(a)\\1", unsupported, "\\1");
    expect_refused("\\k<a>", unsupported, "\\k");
    expect_refused("\\xe4", unsupported, "\\xe4");
    expect_refused("[]a]", unsupported, "[]");
    expect_refused("a)", ggmlx::ErrorKind::CorruptFile, "a)");
    expect_refused("[a", ggmlx::ErrorKind::CorruptFile, "[a");
    expect_refused("\\p{L", ggmlx::ErrorKind::CorruptFile, "\\p{L");
}

TEST(Oniguruma, AnExplodingPatternIsAnErrorNotAHang) {
    const Pattern pattern = Pattern::oniguruma("(?:a|aa)+$");
    std::vector<Range> matches;
    EXPECT_THROW(Pattern::Finder(pattern).find_all(std::string(5000, 'a') + "b", matches), ggmlx::Error);
}

}  // namespace
}  // namespace llm
