// SentencePiece and tiktoken files of real models, and small ones trained for this purpose, against SentencePiece
// itself and the vectors of other implementations.

#include <zstd.h>

#include <cstdlib>
#include <iostream>
#include <iterator>
#include <sstream>

#include "convert/tokenizer_files.h"
#include "src/tokenizer/tokenizer.h"
#include "tests/convert/synthetic.h"

namespace convert {
namespace {

using nlohmann::json;
using Ids = std::vector<llm::TokenId>;
namespace fs = std::filesystem;

constexpr llm::Tokenizer::EncodeOptions kNoBos{.add_special = false};
constexpr llm::Tokenizer::EncodeOptions kPlain{.add_special = false, .parse_special = false};

std::string read_bytes(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    EXPECT_TRUE(in.good()) << path;
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    if (!path.ends_with(".zst")) return bytes;
    std::string out(ZSTD_getFrameContentSize(bytes.data(), bytes.size()), '\0');
    EXPECT_EQ(ZSTD_decompress(out.data(), out.size(), bytes.data(), bytes.size()), out.size()) << path;
    return out;
}

std::string data_path(const std::string& name) { return std::string(GGMLX_TEST_DATA) + "/tokenizers/" + name; }
json data(const std::string& name) { return json::parse(read_bytes(data_path(name))); }

/// A file that may be among the shared data alone.
std::optional<std::string> shared_path(const std::string& name) {
    const char* variable = std::getenv("GGMLX_SHARED_DATA");
    const std::string folder = variable ? variable : std::string(GGMLX_SOURCE_DIR) + "/../shared/data";
    const std::string path = folder + "/tokenizers/" + name;
    return fs::exists(path) ? std::optional(path) : std::nullopt;
}

llm::Tokenizer tokenizer_from(const std::string& path, const std::string& name) {
    const auto no_neighbours = [](std::string_view) -> std::optional<std::string> { return std::nullopt; };
    return llm::Tokenizer::from_json(tokenizer_document(name, read_bytes(path), no_neighbours));
}

void expect_like_sentencepiece(const std::string& name) {
    const llm::Tokenizer t = tokenizer_from(data_path(name + ".model"), "tokenizer.model");
    const json corpus = data("corpus.json"), expected = data(name + "_expected.json");
    ASSERT_EQ(corpus.size(), expected.size());
    for (size_t i = 0; i < corpus.size(); ++i) {
        const auto text = corpus[i].get<std::string>();
        const auto ids = expected[i][0].get<Ids>();
        EXPECT_EQ(t.encode(text, kPlain), ids) << text;
        const bool unknown = std::find(ids.begin(), ids.end(), 0) != ids.end();  // SentencePiece prints it as " ⁇ "
        if (!unknown) {
            EXPECT_EQ(t.decode(ids), expected[i][1].get<std::string>()) << text;
        }
    }
}

TEST(RealTokenizerFiles, BpeEqualsSentencePiece) { expect_like_sentencepiece("sp_bpe"); }
TEST(RealTokenizerFiles, UnigramEqualsSentencePiece) { expect_like_sentencepiece("sp_unigram_bytes"); }

TEST(RealTokenizerFiles, Llama2) {
    const auto path = shared_path("llama2-spm/tokenizer.model");
    if (!path)
        GTEST_SKIP() << "no Llama 2 (Meta's licence): set GGMLX_SHARED_DATA, or put shared/data beside the repository";
    const llm::Tokenizer t = tokenizer_from(*path, "tokenizer.model");
    const std::string texts = read_bytes(data_path("real/llamacpp-vectors/common.inp"));
    std::istringstream expected(read_bytes(data_path("real/llamacpp-vectors/llama-spm.out")));
    const std::string separator = "\n__ggml_vocab_test__\n";
    for (size_t begin = 0, end = 0; end != texts.npos; begin = end + separator.size()) {
        end = texts.find(separator, begin);
        std::string line;
        std::getline(expected, line);  // the last text is empty, and so is what it gives
        std::istringstream numbers(line);
        const Ids ids{std::istream_iterator<llm::TokenId>(numbers), {}};
        const std::string text = texts.substr(begin, std::min(end, texts.size()) - begin);
        EXPECT_EQ(t.encode(text, kNoBos), ids) << text;
    }
}

TEST(RealTokenizerFiles, MistralAndTekken) {
    const json expected = data("real/model_files_expected.json"), corpus = data("corpus.json");
    const llm::Tokenizer spm = tokenizer_from(data_path("real/mistral-v1/tokenizer.model.zst"), "tokenizer.model");
    const llm::Tokenizer tekken = tokenizer_from(data_path("real/tekken/tekken.json.zst"), "tekken.json");
    for (size_t i = 0; i < corpus.size(); ++i) {
        const auto text = corpus[i].get<std::string>();
        EXPECT_EQ(spm.encode(text, kPlain), expected["mistral-v1"][i].get<Ids>()) << text;
        EXPECT_EQ(tekken.encode(text, kPlain), expected["tekken"][i].get<Ids>()) << text;
        EXPECT_EQ(tekken.decode(tekken.encode(text, kPlain)), text);
    }
}

TEST(RealTokenizerFiles, O200kGivesTheIdsOfGptOss) {
    const auto path = shared_path("o200k/o200k_base.tiktoken.zst");
    if (!path)
        GTEST_SKIP() << "no o200k_base.tiktoken: set GGMLX_SHARED_DATA, or put shared/data beside the repository";
    const llm::Tokenizer t = tokenizer_from(*path, "o200k_base.tiktoken");
    const llm::Tokenizer gpt_oss = llm::Tokenizer::from_json(read_bytes(data_path("real/gpt-oss/tokenizer.json.zst")));
    for (const json& text : data("corpus.json"))
        EXPECT_EQ(t.encode(text.get<std::string>(), kPlain), gpt_oss.encode(text.get<std::string>(), kPlain)) << text;
}

}  // namespace
}  // namespace convert
