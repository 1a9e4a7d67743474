// Real vocabularies taken through GGUF metadata give the tokens that the models' own tokenizer.json gives.

#include <zstd.h>

#include <map>

#include "convert/gguf/tokenizer.h"
#include "src/tokenizer/tokenizer.h"
#include "tests/convert/gguf/made_gguf.h"
#include "tests/convert/synthetic.h"

namespace convert {
namespace {

using nlohmann::json;

std::string tokenizer_data(const std::string& name) {
    const std::string bytes = read_file(std::string(GGMLX_TEST_DATA) + "/tokenizers/" + name);
    if (!name.ends_with(".zst")) return bytes;
    std::string text(ZSTD_getFrameContentSize(bytes.data(), bytes.size()), '\0');
    EXPECT_EQ(ZSTD_decompress(text.data(), text.size(), bytes.data(), bytes.size()), text.size()) << name;
    return text;
}

/// What llama.cpp's converter writes of a byte-level tokenizer.
MadeGguf metadata_of(const std::string& tokenizer_json, const std::string& pre) {
    const json root = json::parse(tokenizer_json);
    std::map<int64_t, std::pair<std::string, int32_t>> tokens;  // spelling and kind
    for (const auto& [token, id] : root["model"]["vocab"].items()) tokens[id] = {token, 1};
    for (const json& token : root["added_tokens"])
        tokens[token["id"]] = {token["content"], token["special"].get<bool>() ? 3 : 4};
    std::vector<std::string> spellings, merges;
    std::vector<int32_t> kinds;
    for (int64_t id = 0; id <= tokens.rbegin()->first; ++id) {
        const bool known = tokens.contains(id);
        spellings.push_back(known ? tokens[id].first : "[PAD" + std::to_string(id) + "]");
        kinds.push_back(known ? tokens[id].second : 5);
    }
    for (const json& merge : root["model"]["merges"])
        merges.push_back(merge.is_string() ? merge.get<std::string>()
                                           : merge[0].get<std::string>() + " " + merge[1].get<std::string>());
    MadeGguf made;
    made.text("tokenizer.ggml.model", "gpt2")
        .text("tokenizer.ggml.pre", pre)
        .texts("tokenizer.ggml.tokens", spellings)
        .array("tokenizer.ggml.token_type", GgufKind::I32, kinds)
        .texts("tokenizer.ggml.merges", merges);
    return made;
}

struct RealTokenizer {
    const char *name, *folder, *pre;
};

class GgufRealTokenizer : public testing::TestWithParam<RealTokenizer> {};

TEST_P(GgufRealTokenizer, GivesTheTokensOfItsTokenizerJson) {
    const std::string folder = "real/" + std::string(GetParam().folder);
    const std::string original_json = tokenizer_data(folder + "/tokenizer.json.zst");
    const std::string bytes = metadata_of(original_json, GetParam().pre).bytes();
    const GgufFile file = gguf_of(bytes);
    std::vector<std::string> notes;
    const auto imported = llm::Tokenizer::from_json(gguf_tokenizer_json(file.metadata(), notes));
    const auto original = llm::Tokenizer::from_json(original_json);
    const llm::Tokenizer::EncodeOptions options{.add_special = false};

    for (const json& text : json::parse(tokenizer_data("corpus.json")))
        EXPECT_EQ(imported.encode(text.get<std::string>(), options), original.encode(text.get<std::string>(), options))
            << text;
    if (GetParam().folder == std::string("gpt2")) return;  // without vectors
    for (const json& vector : json::parse(tokenizer_data(folder + "/vectors.json")))
        EXPECT_EQ(json(imported.encode(vector["text"].get<std::string>(), options)), vector["ids"]) << vector["text"];
}

INSTANTIATE_TEST_SUITE_P(Models, GgufRealTokenizer,
                         testing::Values(RealTokenizer{"Gpt2", "gpt2", "gpt-2"},
                                         RealTokenizer{"Qwen3", "qwen3", "qwen2"},
                                         RealTokenizer{"DeepSeekV3", "deepseek-v3", "deepseek-v3"},
                                         RealTokenizer{"GptOss", "gpt-oss", "gpt-4o"}),
                         [](const auto& model) { return model.param.name; });

}  // namespace
}  // namespace convert
