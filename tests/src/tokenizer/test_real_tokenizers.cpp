// Whole tokenizers of real models and their vectors.

#include <zstd.h>

#include <iostream>
#include <sstream>

#include "tests/src/tokenizer/fixtures.h"

namespace llm::test {
namespace {

std::string decompress(const std::string& frame) {
    const auto size = ZSTD_getFrameContentSize(frame.data(), frame.size());
    if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN) {
        ADD_FAILURE() << "no zstd frame with a size";
        return {};
    }
    std::string out(size, '\0');
    EXPECT_EQ(ZSTD_decompress(out.data(), out.size(), frame.data(), frame.size()), size);
    return out;
}

/// The folder of a real tokenizer or of its vectors: with the tests' data, or, where its licence forbids that (Meta's),
/// among the shared data. Nothing, and a printed reason, if it is not at hand.
std::optional<std::string> real_folder(const std::string& name) {
    const std::string here = std::string(GGMLX_TEST_DATA) + "/tokenizers/real/" + name;
    if (std::filesystem::is_directory(here)) return here;
    const auto shared = shared_data();
    if (shared && std::filesystem::is_directory(*shared + "/tokenizers/" + name))
        return *shared + "/tokenizers/" + name;
    std::cout << "skipped " << name << ": set GGMLX_SHARED_DATA, or put shared/data beside the repository\n";
    return std::nullopt;
}

Tokenizer real_tokenizer(const std::string& folder) {
    return Tokenizer::from_json(decompress(read_file(folder + "/tokenizer.json.zst")));
}

constexpr Tokenizer::EncodeOptions kNoBos{.add_special = false};

TEST(RealTokenizers, VectorsOfTwoOtherImplementations) {
    for (const std::string name : {"deepseek-v3", "qwen3", "gpt-oss", "llama-3.1"}) {
        SCOPED_TRACE(name);
        const auto folder = real_folder(name);
        if (!folder) continue;
        const Tokenizer tokenizer = real_tokenizer(*folder);
        const auto cases = nlohmann::json::parse(read_file(*folder + "/vectors.json"));
        EXPECT_GT(cases.size(), 20u);
        for (const auto& c : cases) {
            const auto text = c["text"].get<std::string>();
            const auto ids = tokenizer.encode(text, kNoBos);
            EXPECT_EQ(ids, c["ids"].get<std::vector<TokenId>>()) << text;
            EXPECT_EQ(streamed(tokenizer, ids, false), tokenizer.decode(ids, false)) << text;
        }
    }
}

std::vector<std::string> split_at(const std::string& text, const std::string& separator) {
    std::vector<std::string> parts;
    size_t begin = 0;
    for (size_t at; (at = text.find(separator, begin)) != text.npos; begin = at + separator.size())
        parts.push_back(text.substr(begin, at - begin));
    parts.push_back(text.substr(begin));
    return parts;
}

TEST(RealTokenizers, VectorsOfLlamaCpp) {
    const std::string folder = *real_folder("llamacpp-vectors") + "/";
    const auto texts = split_at(read_file(folder + "common.inp"), "\n__ggml_vocab_test__\n");
    const std::vector<std::pair<std::string, std::string>> vocabularies = {
        {"gpt2", "gpt-2"}, {"qwen3", "qwen2"}, {"llama-3.1", "llama-bpe"}};
    for (const auto& [tokenizer_name, vector_name] : vocabularies) {
        SCOPED_TRACE(vector_name);
        const auto tokenizer_folder = real_folder(tokenizer_name);
        if (!tokenizer_folder) continue;
        const Tokenizer tokenizer = real_tokenizer(*tokenizer_folder);
        const auto lines = split_at(read_file(folder + vector_name + ".out"), "\n");
        ASSERT_GE(lines.size(), texts.size());
        for (size_t i = 0; i < texts.size(); ++i) {
            std::istringstream line(lines[i]);
            const std::vector<TokenId> expected{std::istream_iterator<TokenId>(line), {}};
            EXPECT_EQ(tokenizer.encode(texts[i], kNoBos), expected) << texts[i];
        }
    }
}

TEST(RealTokenizers, StoriesCases) {
    const std::string folder = std::string(GGMLX_TEST_DATA) + "/stories260k/";
    const Tokenizer tokenizer =
        Tokenizer::from_json(read_file(folder + "tokenizer.json"), read_file(folder + "tokenizer_config.json"));
    const auto expected = nlohmann::json::parse(read_file(folder + "expected.json"));
    for (const auto& c : expected["tokenizer_cases"]) {
        const auto text = c["text"].get<std::string>();
        EXPECT_EQ(tokenizer.encode(text), c["ids"].get<std::vector<TokenId>>()) << text;
        EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
    }
}

}  // namespace
}  // namespace llm::test
