// Properties of all code points, as Oniguruma and Hugging Face's tokenizers see them. Compared are the code points of
// Unicode 14; those that came later are unassigned for PCRE2 10.42 and letters or symbols for newer libraries.

#include <set>

#include "src/tokenizer/pattern.h"
#include "src/tokenizer/unicode.h"
#include "src/tokenizer/utf8.h"
#include "tests/src/tokenizer/fixtures.h"

namespace llm::test {
namespace {

constexpr char32_t kEnd = 0x110000;
using Flags = std::vector<bool>;

/// From [gap, count, gap, count …].
Flags from_ranges(const nlohmann::json& ranges) {
    Flags flags(kEnd, false);
    size_t at = 0;
    for (size_t i = 0; i < ranges.size(); i += 2) {
        at += ranges[i].get<size_t>();
        for (size_t n = ranges[i + 1].get<size_t>(); n > 0; --n) flags[at++] = true;
    }
    return flags;
}

void expect_same(const Flags& ours, const Flags& expected, const Flags& compared, const std::string& what) {
    size_t n_different = 0;
    for (char32_t c = 0; c < kEnd; ++c) {
        if (!compared[c] || ours[c] == expected[c]) continue;
        if (++n_different < 10) ADD_FAILURE() << what << ": U+" << std::hex << static_cast<uint32_t>(c);
    }
    EXPECT_EQ(n_different, 0u) << what;
}

Flags characters_matching(const std::string& regex) {
    std::string everything;
    std::vector<char32_t> character_at;  // by byte
    for (char32_t c = 0; c < kEnd; ++c) {
        if (c >= 0xD800 && c < 0xE000) continue;
        append_utf8(everything, c);
        character_at.resize(everything.size(), c);
    }
    std::vector<Range> matches;
    Pattern::Finder(Pattern::oniguruma(regex)).find_all(everything, matches);
    Flags flags(kEnd, false);
    for (const Range& m : matches)
        for (uint32_t at = m.begin; at < m.end; ++at) flags[character_at[at]] = true;
    return flags;
}

TEST(Unicode, RewrittenRegexesMatchTheSameCodePointsAsOniguruma) {
    const nlohmann::json data = fixture("unicode.json");
    Flags assigned = from_ranges(data["assigned"]);
    assigned[0x1171E] = false;  // Mn until Unicode 14, Mc since
    for (const auto& [regex, ranges] : data["regexes"].items()) {
        const Flags expected = from_ranges(ranges);
        expect_same(characters_matching(regex), expected, assigned, regex);
        if (regex == "\\d") continue;
        expect_same(characters_matching("[" + regex + "]"), expected, assigned, "[" + regex + "]");
        Flags others = expected;
        others.flip();
        expect_same(characters_matching("[^" + regex + "]"), others, assigned, "[^" + regex + "]");
    }
}

TEST(Unicode, PredicatesAgreeWithHuggingFace) {
    const nlohmann::json data = fixture("unicode.json");
    const Flags assigned = from_ranges(data["assigned"]);
    const std::vector<std::pair<std::string, bool (*)(char32_t)>> predicates = {
        {"white_space", is_white_space}, {"punctuation", is_punctuation}, {"numeric", is_numeric}, {"word", is_word}};
    for (const auto& [name, predicate] : predicates) {
        Flags ours(kEnd, false);
        for (char32_t c = 0; c < kEnd; ++c) ours[c] = predicate(c);
        expect_same(ours, from_ranges(data["predicates"][name]), assigned, name);
    }
}

class Fnv1a {
  public:
    void add(std::string_view text) {
        for (const char byte : text) value_ = (value_ ^ static_cast<unsigned char>(byte)) * 0x100000001B3u;
    }
    std::string hex() const {
        char text[17];
        std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value_));
        return text;
    }

  private:
    uint64_t value_ = 0xCBF29CE484222325u;
};

TEST(Unicode, NormalFormsOfEveryCharacterAreHuggingFaces) {
    const nlohmann::json data = fixture("unicode.json");
    const Flags assigned = from_ranges(data["assigned"]);
    Fnv1a nfc, nfd, nfkc, nfkd, lower;
    for (char32_t c = 0; c < kEnd; ++c) {
        if (!assigned[c]) continue;
        std::string text;
        append_utf8(text, c);
        nfc.add(normalize(text, NormalForm::Nfc));
        nfd.add(normalize(text, NormalForm::Nfd));
        nfkc.add(normalize(text, NormalForm::Nfkc));
        nfkd.add(normalize(text, NormalForm::Nfkd));
        lower.add(to_lower(text));
    }
    const auto& expected = data["normalized_fnv1a"];
    EXPECT_EQ(nfc.hex(), expected["NFC"].get<std::string>());
    EXPECT_EQ(nfd.hex(), expected["NFD"].get<std::string>());
    EXPECT_EQ(nfkc.hex(), expected["NFKC"].get<std::string>());
    EXPECT_EQ(nfkd.hex(), expected["NFKD"].get<std::string>());
    EXPECT_EQ(lower.hex(), expected["Lowercase"].get<std::string>());
}

TEST(Unicode, MarksAreSortedWhateverTheirNumber) {
    // Descending classes: U+0301 (230) before U+0327 (202). Sorting by neighbours would take minutes.
    std::string text = "a", sorted = "a";
    for (int i = 0; i < 50000; ++i) text += "\u0301";
    for (int i = 0; i < 50000; ++i) text += "\u0327", sorted += "\u0327";
    for (int i = 0; i < 50000; ++i) sorted += "\u0301";
    EXPECT_EQ(normalize(text, NormalForm::Nfd), sorted);
}

}  // namespace
}  // namespace llm::test
