// A SentencePiece vocabulary as tokenizer.json: which merges come out, in which order, and what the runtime makes of
// the document.

#include <limits>

#include "convert/tokenizer/sentencepiece_json.h"
#include "src/tokenizer/tokenizer.h"
#include "tests/convert/synthetic.h"

namespace convert {
namespace {

using nlohmann::json;
using Type = SentencePieces::Type;

/// <unk> <s> </s>, then the pieces given, each scored by its place.
SentencePieces pieces(const std::vector<std::string>& texts) {
    SentencePieces m;
    m.pieces = {{"<unk>", 0, Type::Unknown}, {"<s>", 0, Type::Control}, {"</s>", 0, Type::Control}};
    for (const std::string& text : texts)
        m.pieces.push_back({text, -static_cast<float>(m.pieces.size()), Type::Normal});
    m.unk_id = 0;
    m.bos_id = 1;
    m.eos_id = 2;
    return m;
}

json document(const SentencePieces& m) { return json::parse(tokenizer_json(m)); }
std::vector<llm::TokenId> encode(const SentencePieces& m, std::string_view text) {
    return llm::Tokenizer::from_json(tokenizer_json(m)).encode(text);
}

TEST(SentencePieceJson, MergesComeInTheOrderOfScoresAndLongerLeftPartsFirst) {
    const json tree = document(pieces({"abc", "ab", "bc", "a", "b", "c"}));
    EXPECT_EQ(tree["model"]["merges"], json::parse(R"([["ab","c"],["a","bc"],["a","b"],["b","c"]])"));
}

TEST(SentencePieceJson, LengthsCountCharacters) {
    SentencePieces m = pieces({"aaa", "aa", "a", "éa", "é"});
    for (auto& p : m.pieces) p.score = 0;
    // Equal scores: the longer left part, then the longer right one, then the piece that comes first.
    EXPECT_EQ(document(m)["model"]["merges"], json::parse(R"([["aa","a"],["a","aa"],["a","a"],["é","a"]])"));
}

TEST(SentencePieceJson, NoMergeMakesAControlTokenOrAByte) {
    SentencePieces m = pieces({"<", "s>", "<0x4", "1>"});
    m.pieces.push_back({"<0x41>", 0, Type::Byte});
    EXPECT_EQ(document(m)["model"]["merges"], json::array());
}

TEST(SentencePieceJson, LlamaStyle) {
    SentencePieces m = pieces({"▁a", "▁", "a", "b"});
    m.pieces.push_back({"<x>", 0, Type::UserDefined});
    EXPECT_EQ(encode(m, "a b"), (std::vector<llm::TokenId>{1, 3, 4, 6}));
    EXPECT_EQ(encode(m, "<x>a"), (std::vector<llm::TokenId>{1, 7, 3})) << "the prefix follows an added token";
    const auto tokenizer = llm::Tokenizer::from_json(tokenizer_json(m));
    EXPECT_FALSE(tokenizer.is_special(7));
    EXPECT_EQ(tokenizer.decode(tokenizer.encode("a b")), "a b");
    m.legacy = false;
    EXPECT_EQ(encode(m, "<x>a"), (std::vector<llm::TokenId>{1, 7, 5}));
    EXPECT_EQ(encode(m, "a"), (std::vector<llm::TokenId>{1, 3}));
    m.add_dummy_prefix = false;
    m.add_eos = true;
    EXPECT_EQ(encode(m, "a"), (std::vector<llm::TokenId>{1, 5, 2}));
}

TEST(SentencePieceJson, ExtraWhiteSpaceIsRemovedWhereTheModelAsks) {
    SentencePieces m = pieces({"▁a", "▁b", "▁", "a", "b"});
    m.remove_extra_whitespaces = true;
    EXPECT_EQ(encode(m, "  a   b "), (std::vector<llm::TokenId>{1, 3, 4}));
}

TEST(SentencePieceJson, WhatCannotBeIsAnError) {
    const auto fails = [](const SentencePieces& m, const std::string& part) {
        try {
            tokenizer_json(m);
            ADD_FAILURE() << "no error about " << part;
        } catch (const ggmlx::Error& e) {
            EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
        }
    };
    fails(pieces({"a", "a"}), "both 'a'");
    fails(pieces({""}), "is empty");
    fails(pieces({"\xFF"}), "not UTF-8");
    fails(pieces({std::string(1025, 'a')}), "1025 bytes");
    SentencePieces m = pieces({"a"});
    m.eos_id = 4;
    fails(m, "there are 4 pieces");
    m = pieces({"a"});
    m.pieces[3].score = std::numeric_limits<float>::quiet_NaN();
    fails(m, "score of piece 3");
    // Each of these can be cut at every place.
    std::vector<std::string> texts;
    for (const char* letter : {"a", "b", "c", "d"})
        for (size_t n = 1; n <= 1024; ++n) {
            texts.emplace_back();
            for (size_t i = 0; i < n; ++i) texts.back() += letter;
        }
    fails(pieces(texts), "too many ways");
}

TEST(SentencePieceJson, AQuarterOfAMillionPiecesTakeLinearTime) {
    std::vector<std::string> texts;
    for (char32_t a = 0; a < 64; ++a)
        for (int b = 0; b < 64; ++b)
            for (int c = 0; c < 64; ++c) texts.push_back({char('0' + a), char('0' + b), char('0' + c)});
    const json tree = document(pieces(texts));
    EXPECT_EQ(tree["model"]["vocab"].size(), texts.size() + 3);
}

}  // namespace
}  // namespace convert
