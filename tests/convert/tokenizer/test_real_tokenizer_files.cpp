// SentencePiece and tiktoken files of real models, and small ones trained for this purpose, against SentencePiece
// itself and the vectors of other implementations.

#include <zstd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <iterator>
#include <sstream>

#include "convert/tokenizer/files.h"
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

std::string document_from(const std::string& path, const std::string& name) {
    const auto no_neighbours = [](std::string_view) -> std::optional<std::string> { return std::nullopt; };
    return tokenizer_document(name, read_bytes(path), no_neighbours);
}
llm::Tokenizer tokenizer_from(const std::string& path, const std::string& name) {
    return llm::Tokenizer::from_json(document_from(path, name));
}

/// Rows of the corpus: the text, what SentencePiece makes of it, and the text of that.
void for_each_row(const std::string& name, const std::function<void(std::string, Ids, std::string)>& f) {
    const json corpus = data("corpus.json"), expected = data(name + "_expected.json");
    ASSERT_EQ(corpus.size(), expected.size());
    for (size_t i = 0; i < corpus.size(); ++i) f(corpus[i], expected[i][0], expected[i][1]);
}

TEST(RealTokenizerFiles, BpeEqualsSentencePiece) {
    const llm::Tokenizer t = tokenizer_from(data_path("sp_bpe.model"), "tokenizer.model");
    for_each_row("sp_bpe", [&](const std::string& text, const Ids& ids, const std::string& decoded) {
        EXPECT_EQ(t.encode(text, kPlain), ids) << text;
        const bool unknown = std::find(ids.begin(), ids.end(), 0) != ids.end();  // SentencePiece prints it as " ⁇ "
        EXPECT_EQ(unknown ? decoded : t.decode(ids), decoded) << text;
    });
}

TEST(RealTokenizerFiles, UnigramIsAsLikelyAsSentencePieces) {
    // SentencePiece adds scores as float, Hugging Face (and this) as double, so that of two ways with the same score
    // each takes its own. Left out are texts that spell control pieces, which SentencePiece does not know there, and
    // "▁", which it takes for a space.
    const llm::Tokenizer t = tokenizer_from(data_path("sp_unigram_bytes.model"), "tokenizer.model");
    const json vocab =
        json::parse(document_from(data_path("sp_unigram_bytes.model"), "tokenizer.model"))["model"]["vocab"];
    const auto score = [&](const Ids& ids) {
        double total = 0;
        for (const llm::TokenId id : ids) total += vocab[static_cast<size_t>(id)][1].get<double>();
        return total;
    };
    size_t n_equal = 0, n_texts = 0;
    for_each_row("sp_unigram_bytes", [&](const std::string& text, const Ids& ids, const std::string& decoded) {
        for (const char* spelled : {"<s>", "<unk>", "<0x", "▁"})
            if (text.find(spelled) != text.npos) return;
        const Ids ours = t.encode(text, kPlain);
        EXPECT_NEAR(score(ours), score(ids), 1e-4 * (1 + std::abs(score(ids)))) << text;
        EXPECT_EQ(t.decode(ours), decoded) << text;
        n_equal += ours == ids;
        ++n_texts;
    });
    EXPECT_GT(n_texts, 170u);
    EXPECT_GT(n_equal, n_texts * 9 / 10);
}

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
