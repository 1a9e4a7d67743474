// Every construct of tokenizer.json by itself, against what Hugging Face's tokenizers makes of it.

#include "src/tokenizer/decoder.h"
#include "src/tokenizer/normalizer.h"
#include "src/tokenizer/pretokenizer.h"
#include "tests/src/tokenizer/fixtures.h"

namespace llm::test {
namespace {

using Strings = std::vector<std::string>;

TEST(Constructs, NormalizersEqualHuggingFace) {
    const nlohmann::json data = fixture("constructs.json");
    const auto texts = data["texts"].get<Strings>();
    for (const auto& row : data["normalizers"]) {
        const Normalizer normalizer = parse_normalizer(row[0]);
        const auto expected = row[1].get<Strings>();
        for (size_t i = 0; i < texts.size(); ++i) {
            NormalText normal{texts[i]};
            normalizer(normal);
            EXPECT_EQ(normal.text, expected[i]) << row[0] << texts[i];
        }
    }
}

Strings cut(const PreTokenizer& pre_tokenizer, const std::string& text) {
    Pieces pieces;
    pieces.text = text;
    if (!text.empty()) pieces.pieces.push_back({0, static_cast<uint32_t>(text.size())});
    pre_tokenizer(pieces);
    Strings result;
    for (size_t i = 0; i < pieces.pieces.size(); ++i) result.emplace_back(pieces.piece(i));
    return result;
}

TEST(Constructs, PreTokenizersEqualHuggingFace) {
    const nlohmann::json data = fixture("constructs.json");
    const auto texts = data["texts"].get<Strings>();
    for (const auto& row : data["pre_tokenizers"]) {
        const PreTokenizer pre_tokenizer = parse_pre_tokenizer(row[0]);
        const auto expected = row[1].get<std::vector<Strings>>();
        for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(cut(pre_tokenizer, texts[i]), expected[i]) << row[0];
    }
}

TEST(Constructs, DecodersEqualHuggingFace) {
    const nlohmann::json data = fixture("constructs.json");
    const auto lists = data["token_lists"].get<std::vector<Strings>>();
    size_t n_compared = 0;
    for (const auto& row : data["decoders"]) {
        const DecodeChain chain = parse_decoder(row[0]);
        for (size_t i = 0; i < lists.size(); ++i) {
            if (row[1][i].is_null()) continue;  // the oracle panics
            Decoding decoding(chain);
            for (const std::string& token : lists[i]) decoding.push(token);
            decoding.finish();
            EXPECT_EQ(decoding.take(), row[1][i].get<std::string>()) << row[0] << nlohmann::json(lists[i]);
            ++n_compared;
        }
    }
    EXPECT_GT(n_compared, 200u);
}

TEST(Constructs, SmallTokenizersEqualHuggingFace) {
    for (const auto& entry : fixture("small.json")) {
        SCOPED_TRACE(entry["name"].get<std::string>());
        const Tokenizer tokenizer = Tokenizer::from_json(entry["tokenizer"].dump());
        for (const auto& row : entry["cases"]) {
            const auto text = row[0].get<std::string>();
            SCOPED_TRACE(text);
            const auto ids = row[1].get<std::vector<TokenId>>();
            EXPECT_EQ(tokenizer.encode(text), ids);
            EXPECT_EQ(tokenizer.encode(text, {.add_special = false}), row[2].get<std::vector<TokenId>>());
            EXPECT_EQ(tokenizer.decode(ids, false), row[3].get<std::string>());
            EXPECT_EQ(tokenizer.decode(ids, true), row[4].get<std::string>());
            EXPECT_EQ(streamed(tokenizer, ids, false), row[3].get<std::string>());
        }
    }
}

}  // namespace
}  // namespace llm::test
