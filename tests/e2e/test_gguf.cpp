// Models imported from GGUF files compute what the Hugging Face checkpoints they were made from compute.

#include <nlohmann/json.hpp>

#include "support.h"

namespace e2e {
namespace {

class GgufModel : public testing::TestWithParam<std::string> {};

// As in test_architectures.cpp: two float32 computations with sums in different order.
constexpr float kImportTolerance = 1e-4f;

TEST_P(GgufModel, GivesTheLogitsOfTheOriginalCheckpoint) {
    const std::string checkpoint = "fixtures/" + GetParam();
    const TempFolder from_gguf, from_folder;
    const auto model = llm::Model::open(make_model(from_gguf, "gguf/" + GetParam() + ".gguf"));
    const auto original = llm::Model::open(make_model(from_folder, checkpoint));
    for (const char* prompt : {"p7", "p150"}) {
        const auto ids = reference_ids(checkpoint, std::string(prompt) + ".ids");
        const auto expected = reference_floats(checkpoint, std::string(prompt) + ".logits");
        llm::EngineOptions options = exact_options();
        options.max_outputs = static_cast<int64_t>(expected.size()) / model.config().n_vocab;
        const auto logits = prompt_logits(model, options, ids, options.max_outputs);
        EXPECT_TRUE(same_bits(logits, prompt_logits(original, options, ids, options.max_outputs))) << prompt;
        EXPECT_LE(max_difference(logits, expected), kImportTolerance) << prompt;
    }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, GgufModel, testing::Values("llama_bf16", "llama_untied", "qwen3_yarn"),
                         [](const auto& fixture) { return fixture.param; });

TEST(GgufProgram, ConvertsAndSaysWhatItNeeds) {
    const TempFolder folder;
    const std::string source = data_path("gguf/llama_quantized.gguf"), out = folder.file("m.ggmx");
    const auto refused = run_program({"convert", source, "-o", out, "--type", "q4_0"});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_NE(refused.err.find("--allow-requantize"), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("blk.0.attn_q.weight: q8_0 -> q4_0"), std::string::npos) << refused.err;
    EXPECT_EQ(refused.err.find("attn_k"), std::string::npos) << "q4_0 already: " << refused.err;

    EXPECT_EQ(run_program({"convert", source, "--dry-run"}).exit_code, 0);
    const auto allowed = run_program({"convert", source, "-o", out, "--type", "q4_0", "--allow-requantize"});
    EXPECT_EQ(allowed.exit_code, 0) << allowed.err;
    EXPECT_NE(allowed.out.find("quantized a second time: blk.0.attn_q.weight (q8_0 -> q4_0)"), std::string::npos);
    EXPECT_EQ(run_program({"verify", out}).exit_code, 0);
}

TEST(GgufProgram, PlansAGgufFileAsItWouldBeStored) {
    const TempFolder folder;
    const std::string source = data_path("gguf/llama_quantized.gguf"), out = folder.file("m.ggmx");
    ASSERT_EQ(run_program({"convert", source, "-o", out}).exit_code, 0);
    const auto before = run_program({"plan", source, "--json"}), after = run_program({"plan", out, "--json"});
    ASSERT_EQ(before.exit_code, 0) << before.err;
    const auto bytes = [](const std::string& text) {
        return nlohmann::json::parse(text).at("devices").at(0).at("dense_bytes").get<int64_t>();
    };
    EXPECT_GT(bytes(before.out), 0);
    EXPECT_EQ(bytes(before.out), bytes(after.out));
}

}  // namespace
}  // namespace e2e
