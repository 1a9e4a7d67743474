// Encoding in segments: what a template wrote is parsed, what a user wrote is text, and borders leave no other trace.

#include "ggmlx/core/error.h"
#include "src/tokenizer/normalizer.h"
#include "src/tokenizer/trust.h"
#include "tests/src/tokenizer/fixtures.h"

namespace llm::test {
namespace {

using nlohmann::json;
using Ids = std::vector<TokenId>;
using Segments = std::vector<Tokenizer::Segment>;

json added(TokenId id, const std::string& content, bool special, bool normalized) {
    return {{"id", id}, {"content", content}, {"special", special}, {"normalized", normalized}};
}

/// Tokens a … of one character, then the added ones; `change` adds to the document.
Tokenizer with(const std::vector<json>& added_tokens, const json& change = json::object()) {
    json vocab = json::object();
    int id = 0;
    for (const char* t : {"a", "b", "c", "d", "<", ">", "/", "s", "▁", " ", "é", "e", "\u0301"}) vocab[t] = id++;
    json tree = {{"added_tokens", added_tokens},
                 {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", json::array()}}}};
    tree.merge_patch(change);
    return Tokenizer::from_json(tree.dump());
}

std::vector<std::string> spelled(const Tokenizer& t, const Ids& ids) {
    std::vector<std::string> out;
    for (const TokenId id : ids) out.push_back(t.id_to_token(id));
    return out;
}
std::string spell(const Tokenizer& t, const Segments& segments) {
    std::string out;
    for (const std::string& token : spelled(t, t.encode_segments(segments))) out += "[" + token + "]";
    return out;
}

TEST(Segments, OnlyTrustedTextHoldsAddedTokens) {
    for (const bool special : {true, false})
        for (const bool normalized : {true, false}) {
            const Tokenizer t = with({added(20, "<s>", special, normalized)});
            EXPECT_EQ(spell(t, {{"<s>a"}, {"<s>", false}, {"<s>"}}), "[<s>][a][<][s][>][<s>]");
            EXPECT_EQ(spell(t, {{"a<s>b", false}}), "[a][<][s][>][b]");
        }
}

TEST(Segments, NeighboursThatAreTrustedCountAsOne) {
    const Tokenizer t = with({added(20, "<s>", true, false)});
    EXPECT_EQ(spell(t, {{"<"}, {"s"}, {""}, {">"}}), "[<s>]");
    EXPECT_EQ(spell(t, {{"<"}, {"s", false}, {">"}}), "[<][s][>]");
    EXPECT_EQ(spell(t, {{"<s"}, {">", false}, {"<s>"}}), "[<][s][>][<s>]");
    EXPECT_EQ(spell(t, {{"<"}, {"", false}, {"s>"}}), "[<s>]") << "an empty segment separates nothing";
}

TEST(Segments, AShorterTokenCountsWhereTheLongerOneIsNotTrusted) {
    const Tokenizer t = with({added(20, "<s>", true, false), added(21, "<s>a", true, false)});
    EXPECT_EQ(spell(t, {{"<s>"}, {"a", false}}), "[<s>][a]");
    EXPECT_EQ(spell(t, {{"<s>a"}}), "[<s>a]");
}

TEST(Segments, BlankTokensCountEverywhere) {
    const Tokenizer t = with({added(20, "  ", false, false)});
    EXPECT_EQ(spell(t, {{"a  b", false}}), "[a][  ][b]");
    EXPECT_EQ(spell(t, {{"a "}, {" b", false}}), "[a][  ][b]") << "also across a border";
}

TEST(Segments, BordersDoNotCutWords) {
    const json rules = fixture("byte_level.json");
    const Tokenizer t = Tokenizer::from_json(rules.dump());
    for (const std::string& text : corpus()) {
        const Ids whole = t.encode(text, {.parse_special = false});
        for (size_t at = 0; at <= text.size(); ++at) {
            if (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) continue;
            const std::string_view left = std::string_view(text).substr(0, at),
                                   right = std::string_view(text).substr(at);
            ASSERT_EQ(t.encode_segments(Segments{{left, false}, {right, false}}), whole) << text << " at " << at;
        }
    }
}

TEST(Segments, BordersDoNotMatterWhereNothingIsFound) {
    // Text without added tokens: trusted or not, the ids are the same, for normalizers that look across borders, too.
    const std::vector<json> normalizers = {
        {{"type", "NFC"}},
        {{"type", "NFKD"}},
        {{"type", "Lowercase"}},
        {{"type", "Prepend"}, {"prepend", "▁"}},
        {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}},
        {{"type", "Replace"}, {"pattern", {{"Regex", " +"}}}, {"content", ""}},
        {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}},
    };
    const std::string text = "  a e\u0301 b  \u00e9c \u0301d  ";
    for (const json& normalizer : normalizers) {
        const Tokenizer t = with({added(20, "<s>", true, true)}, {{"normalizer", normalizer}});
        const Ids whole = t.encode(text);
        for (size_t i = 0; i <= text.size(); ++i)
            for (size_t j = i; j <= text.size(); ++j) {
                const auto inside = [&](size_t at) {
                    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
                };
                if (inside(i) || inside(j)) continue;
                const std::string_view all = text;
                ASSERT_EQ(
                    t.encode_segments(Segments{{all.substr(0, i)}, {all.substr(i, j - i), false}, {all.substr(j)}}),
                    whole)
                    << normalizer << " at " << i << ", " << j;
            }
    }
}

TEST(Segments, TrustFollowsTextThroughNormalizers) {
    const std::vector<json> normalizers = {
        {{"type", "NFC"}},
        {{"type", "NFD"}},
        {{"type", "Lowercase"}},
        {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}},
        {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}},
    };
    for (const json& normalizer : normalizers) {
        const Tokenizer t = with({added(20, "<s>", false, true)}, {{"normalizer", normalizer}});
        for (const std::string user : {"e\u0301", " a ", "é", "\u0301", "<s>", "e\u0301<s>\u0301", "", "   "}) {
            const Ids ids = t.encode_segments(Segments{{" <s>"}, {user, false}, {"<s>"}, {user, false}});
            EXPECT_EQ(std::count(ids.begin(), ids.end(), 20), 2) << normalizer << user;
        }
    }
}

TEST(Segments, ANormalizerDoesNotMakeMarkupOfPlainText) {
    const Tokenizer t = with({added(20, "<s>", false, true)}, {{"normalizer", {{"type", "NFKC"}}}});
    EXPECT_EQ(spell(t, {{"\uff1cs\uff1e", false}}), "[<][s][>]") << "full-width brackets";
    EXPECT_EQ(spell(t, {{"\uff1cs\uff1e"}, {"\uff1cs\uff1e", false}}), "[<s>][<][s][>]");
}

TEST(Segments, TheModelMakesNoSpecialTokenOfPlainText) {
    json tree = json::parse(R"({"added_tokens": [], "model": {"type": "BPE", "merges": ["s >", "< s>"],
        "vocab": {"<": 0, "s": 1, ">": 2, "s>": 3, "<s>": 4, "a": 5}}})");
    tree["added_tokens"].push_back(added(4, "<s>", true, false));
    const Tokenizer t = Tokenizer::from_json(tree.dump());
    EXPECT_EQ(spell(t, {{"<s>"}}), "[<s>]");
    EXPECT_EQ(spell(t, {{"a<s>a", false}}), "[a][<][s>][a]");
    EXPECT_EQ(spell(t, {{"a<s"}, {">", false}}), "[a][<][s>]") << "half of it was trusted";
    tree["added_tokens"][0]["special"] = false;
    EXPECT_EQ(spell(Tokenizer::from_json(tree.dump()), {{"<s>", false}}), "[<s>]") << "a word like any other";
}

TEST(Segments, SpecialIdsGoAroundTheWhole) {
    const Tokenizer t =
        Tokenizer::from_json(read_fixture("stories260k.json"), R"({"add_bos_token": true, "bos_token": "<s>"})");
    const Ids whole = t.encode("Once upon");
    EXPECT_EQ(t.encode_segments(Segments{{"Once"}, {" upon", false}}), whole);
    EXPECT_EQ(t.encode_segments(Segments{{"Once"}, {" upon"}}, false), Ids(whole.begin() + 1, whole.end()));
    EXPECT_EQ(t.encode_segments({}), t.encode(""));
}

TEST(Trust, FollowsEdits) {
    const auto after = [](std::vector<Stretch> stretches, const std::vector<Edit>& edits) {
        std::string out;
        const Trust moved = Trust::only(std::move(stretches)).after(edits);
        for (const Stretch& s : moved.stretches()) out += std::to_string(s.begin) + "-" + std::to_string(s.end) + " ";
        return out;
    };
    EXPECT_EQ(after({{2, 4}}, {}), "2-4 ");
    EXPECT_EQ(after({{0, 2}, {4, 6}}, {{0, 0, 3}}), "0-5 7-9 ") << "text put before everything";
    EXPECT_EQ(after({{2, 4}}, {{0, 2, 1}}), "1-3 ") << "an edit that ends at the border";
    EXPECT_EQ(after({{2, 4}}, {{4, 5, 9}}), "2-4 ") << "and one that begins there";
    EXPECT_EQ(after({{2, 6}}, {{1, 3, 5}, {5, 7, 5}}), "6-8 ") << "what comes from both sides is not trusted";
    EXPECT_EQ(after({{2, 4}, {6, 8}}, {{1, 5, 0}}), "2-4 ") << "what is gone is gone";
    EXPECT_EQ(after({{2, 4}}, {{2, 4, 7}}), "2-9 ");
}

}  // namespace
}  // namespace llm::test
