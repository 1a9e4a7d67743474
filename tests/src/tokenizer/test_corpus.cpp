// Token-for-token equality with Hugging Face's tokenizers on the corpus, for whole small tokenizers.

#include "tests/src/tokenizer/fixtures.h"

namespace llm::test {
namespace {

/// Rows of expected: ids, decoded text, decoded text without special tokens.
void expect_same(const Tokenizer& tokenizer, const nlohmann::json& expected) {
    const auto texts = corpus();
    ASSERT_EQ(texts.size(), expected.size());
    for (size_t i = 0; i < texts.size(); ++i) {
        SCOPED_TRACE(texts[i]);
        const auto ids = expected[i][0].get<std::vector<TokenId>>();
        EXPECT_EQ(tokenizer.encode(texts[i]), ids);
        EXPECT_EQ(tokenizer.decode(ids, false), expected[i][1].get<std::string>());
        EXPECT_EQ(tokenizer.decode(ids, true), expected[i][2].get<std::string>());
        EXPECT_EQ(streamed(tokenizer, ids, false), expected[i][1].get<std::string>());
        EXPECT_EQ(streamed(tokenizer, ids, true), expected[i][2].get<std::string>());
    }
}

TEST(Corpus, ByteLevelEqualsHuggingFace) {
    expect_same(Tokenizer::from_json(read_fixture("byte_level.json")), fixture("byte_level_expected.json"));
}

TEST(Corpus, SentencePieceStyleEqualsHuggingFace) {
    expect_same(Tokenizer::from_json(read_fixture("stories260k.json")), fixture("stories260k_expected.json"));
}

TEST(Corpus, UnigramEqualsHuggingFace) {
    expect_same(Tokenizer::from_json(read_fixture("unigram.json")), fixture("unigram_expected.json"));
}

TEST(Corpus, OneChangedCharacterOfTheRegexIsFollowed) {
    nlohmann::json tree = fixture("byte_level.json");
    auto& regex = tree["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"];
    auto text = regex.get<std::string>();
    const size_t at = text.find("]?\\p{L}+");
    ASSERT_NE(at, text.npos);
    text[at + 5] = 'N';
    regex = text;
    const nlohmann::json expected = fixture("byte_level_changed_expected.json");
    EXPECT_NE(expected, fixture("byte_level_expected.json"));
    expect_same(Tokenizer::from_json(tree.dump()), expected);
}

TEST(Corpus, MergesMayBePairsOrStrings) {
    nlohmann::json tree = fixture("byte_level.json");
    for (auto& merge : tree["model"]["merges"]) {
        ASSERT_TRUE(merge.is_array());
        merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
    }
    expect_same(Tokenizer::from_json(tree.dump()), fixture("byte_level_expected.json"));
}

TEST(Corpus, OrderOfKeysDoesNotMatter) {
    // nlohmann sorts keys, so "merges" comes before "vocab" and "added_tokens" before both.
    expect_same(Tokenizer::from_json(fixture("stories260k.json").dump()), fixture("stories260k_expected.json"));
}

}  // namespace
}  // namespace llm::test
