// Every architecture on tiny random checkpoints, against logits that Hugging Face transformers computed.

#include "support.h"

namespace e2e {
namespace {

class Architecture : public testing::TestWithParam<std::string> {
  protected:
    const std::string checkpoint_ = "fixtures/" + GetParam();
    TempFolder folder_;
    const llm::Model model_ = llm::Model::open(make_model(folder_, checkpoint_));
};

// tests/data/fixtures/ORIGIN.md: the reference itself lies within 2e-5 of float64, its logits span about ±8; 1e-4 is
// what two float32 computations with sums of some hundred terms in different order stay within.
constexpr float kTolerance = 1e-4f;

TEST_P(Architecture, GivesTheLogitsOfTransformers) {
    for (const char* prompt : {"p1", "p7", "p33", "p150"}) {
        const auto ids = reference_ids(checkpoint_, std::string(prompt) + ".ids");
        const auto expected = reference_floats(checkpoint_, std::string(prompt) + ".logits");
        const auto n_outputs = static_cast<int64_t>(expected.size()) / model_.config().n_vocab;
        llm::EngineOptions options = exact_options();
        options.max_outputs = n_outputs;
        EXPECT_LE(max_difference(prompt_logits(model_, options, ids, n_outputs), expected), kTolerance) << prompt;
    }
}

TEST_P(Architecture, ContinuesGreedilyLikeTransformers) {
    llm::Engine engine(model_, exact_options());
    for (const char* prompt : {"p1", "p7", "p33", "p150"}) {
        const auto ids = reference_ids(checkpoint_, std::string(prompt) + ".ids");
        const auto expected = reference_ids(checkpoint_, std::string(prompt) + ".greedy");
        llm::Session session(engine);
        EXPECT_EQ(greedy(session, ids, static_cast<int64_t>(expected.size())), expected) << prompt;
    }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Architecture,
                         testing::Values("llama", "llama_bf16", "llama_untied", "llama_linear", "llama_sharded",
                                         "llama_k", "mistral", "qwen2", "qwen2_swa", "qwen3", "qwen3_yarn", "mixtral",
                                         "qwen2_moe", "qwen3_moe", "olmoe", "gpt_oss", "deepseek_v2",
                                         "deepseek_v2_lite", "deepseek_v3", "kimi_k2", "glm4_moe", "minimax_m2"),
                         [](const auto& fixture) { return fixture.param; });

}  // namespace
}  // namespace e2e
