// One prompt, one result: whatever the batch, the chunks, the threads, the instruction set and the placement, logits
// have the same bits.

#include <fmt/core.h>

#include <random>

#include "ggmlx/core/error.h"
#include "support.h"

namespace e2e {
namespace {

constexpr int64_t kOutputs = 5;

/// llama_untied has biases everywhere, an output matrix and odd sizes; qwen3_yarn norms per head; qwen2_swa windows;
/// the others have experts, and every trait of attention among them.
class Equality : public testing::TestWithParam<std::string> {
  protected:
    const std::string checkpoint_ = "fixtures/" + GetParam();
    TempFolder folder_;
    const llm::Model model_ = llm::Model::open(make_model(folder_, checkpoint_, "f32"));
    const std::vector<llm::TokenId> prompt_ = reference_ids(checkpoint_, "p150.ids");

    std::vector<float> logits(const llm::EngineOptions& options) const {
        return prompt_logits(model_, options, prompt_, kOutputs);
    }
    const std::vector<float> plain_ = logits(exact_options());
};

TEST_P(Equality, OfChunksOfAPrompt) {
    for (int64_t max_batch : {1, 3, 7, 64, 149, 150}) {
        llm::EngineOptions options = exact_options();
        options.max_batch = max_batch;
        EXPECT_TRUE(same_bits(logits(options), plain_)) << "steps of " << max_batch;
    }
}

TEST_P(Equality, OfPiecesHandedInOneAfterTheOther) {
    llm::Engine engine(model_, exact_options());
    for (size_t piece : {1, 3, 7}) {
        llm::Session session(engine);
        std::vector<float> last;
        for (size_t i = 0; i < prompt_.size(); i += piece) {
            const auto part = std::span(prompt_).subspan(i, std::min(piece, prompt_.size() - i));
            last = engine.eval({&session, part, 1}).values;
        }
        const auto n_vocab = static_cast<size_t>(model_.config().n_vocab);
        EXPECT_TRUE(same_bits(last, std::span(plain_).last(n_vocab))) << "pieces of " << piece;
    }
}

TEST_P(Equality, OfSequencesSideBySideAndAlone) {
    llm::EngineOptions options = exact_options();
    options.n_sequences = 4;
    llm::Engine engine(model_, options);
    const std::vector<std::vector<llm::TokenId>> prompts{
        prompt_, reference_ids(checkpoint_, "p7.ids"), reference_ids(checkpoint_, "p33.ids"), {prompt_[9]}};
    std::vector<llm::Session> sessions;
    std::vector<llm::BatchItem> batch;
    for (size_t i = 0; i < prompts.size(); ++i) sessions.emplace_back(engine);
    for (size_t i = 0; i < prompts.size(); ++i) batch.push_back({&sessions[i], prompts[i], 1});
    const llm::Logits together = engine.eval(batch);
    const std::vector<llm::TokenId> next{3, 1, 4, 1};
    for (size_t i = 0; i < prompts.size(); ++i) batch[i] = {&sessions[i], std::span(&next[i], 1), 1};
    const llm::Logits decoded = engine.eval(batch);
    for (size_t i = 0; i < prompts.size(); ++i) {
        llm::Engine alone(model_, exact_options());
        llm::Session session(alone);
        const auto row = static_cast<int64_t>(i);
        EXPECT_TRUE(same_bits(alone.eval({&session, prompts[i], 1}).row(0), together.row(row))) << "prompt " << i;
        EXPECT_TRUE(same_bits(alone.eval({&session, std::span(&next[i], 1), 1}).row(0), decoded.row(row)))
            << "next token " << i;
    }
}

TEST_P(Equality, OfThreadCountsAndInstructionSets) {
    for (const std::string& isa : isas())
        for (int n_threads : {1, 2, 3}) {
            llm::EngineOptions options = exact_options();
            options.devices = {n_threads, isa};
            EXPECT_TRUE(same_bits(logits(options), plain_)) << isa << " with " << n_threads << " threads";
        }
}

TEST_P(Equality, OfPlacementsByLayerAndByKind) {
    std::vector<std::string> placements{".*=ref0",   "blk\\.0\\..*=ref0", "blk\\.[12]\\..*=ref1,output.*=ref0",
                                        "attn=ref0", "ffn=ref1",          "ffn=ref0,attn=ref1",
                                        "norm=ref0", "token_embd=ref1",   "cache_k=ref0"};
    if (!model_.config().latent) placements.push_back("cache_k=ref0,cache_v=ref1");
    for (const std::string& text : placements) {
        llm::EngineOptions options = exact_options();
        options.rules = ggmlx::parse_rules(text);
        EXPECT_TRUE(same_bits(logits(options), plain_)) << text;
    }
}

TEST_P(Equality, OfRandomPlacementsOfSingleTensors) {
    std::mt19937 random(7);
    for (int round = 0; round < 20; ++round) {
        llm::EngineOptions options = exact_options();
        const char* const devices[] = {"cpu", "ref0", "ref1"};
        const auto place = [&](const std::string& name) {
            options.rules.push_back(rule(fmt::format("^{}$={}", name, devices[random() % 3])));
        };
        for (int32_t i = 0; i < model_.weights().size(); ++i) place(model_.weights()[i].name());
        for (int64_t il = 0; il < model_.config().n_layer; ++il) {
            place(fmt::format("blk.{}.cache_k", il));
            if (!model_.config().latent) place(fmt::format("blk.{}.cache_v", il));
        }
        EXPECT_TRUE(same_bits(logits(options), plain_)) << "round " << round;
    }
}

TEST_P(Equality, AfterCuttingBackAndGoingOn) {
    llm::Engine engine(model_, exact_options());
    llm::Session session(engine);
    engine.eval({&session, std::span(prompt_).first(100), 0});
    const std::vector<llm::TokenId> detour(50, 11);
    engine.eval({&session, detour, 0});
    session.truncate(100);
    const auto rest = engine.eval({&session, std::span(prompt_).subspan(100), 1});
    EXPECT_TRUE(same_bits(rest.values, std::span(plain_).last(rest.values.size())));
    EXPECT_EQ(session.ids(), prompt_);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Equality,
                         testing::Values("llama_untied", "qwen2_swa", "qwen3_yarn", "mixtral", "qwen2_moe", "qwen3_moe",
                                         "olmoe", "gpt_oss", "deepseek_v2", "deepseek_v3", "glm4_moe", "minimax_m2"),
                         [](const auto& fixture) { return fixture.param; });

/// The types that weights can have, on rows long enough for every block.
class WeightTypes : public testing::TestWithParam<std::string> {};

TEST_P(WeightTypes, GiveTheSameBitsOnEveryIsaAndOnTheReference) {
    const TempFolder folder;
    const auto model = llm::Model::open(make_model(folder, "fixtures/llama_k", GetParam()));
    const auto prompt = reference_ids("fixtures/llama_k", "p33.ids");
    llm::EngineOptions options = exact_options();
    options.rules = {rule(".*=ref0")};
    const auto expected = prompt_logits(model, options, prompt, 2);
    options.rules.clear();
    for (const std::string& isa : isas())
        for (int64_t max_batch : {1, 5, 512}) {
            options.devices = {3, isa};
            options.max_batch = max_batch;
            EXPECT_TRUE(same_bits(prompt_logits(model, options, prompt, 2), expected)) << isa << " " << max_batch;
        }
}

INSTANTIATE_TEST_SUITE_P(Types, WeightTypes,
                         testing::Values("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q4_k", "q6_k", "mxfp4",
                                         "mxfp8"),
                         [](const auto& fixture) { return fixture.param; });

class CacheTypes : public testing::TestWithParam<ggmlx::DType> {};

TEST_P(CacheTypes, GiveTheSameBitsOnEveryIsaInChunksAndOnTheReference) {
    const TempFolder folder;
    const auto model = llm::Model::open(make_model(folder, "fixtures/qwen3", "f32"));
    const auto prompt = reference_ids("fixtures/qwen3", "p150.ids");
    llm::EngineOptions options = exact_options();
    options.cache_k = options.cache_v = GetParam();
    options.rules = {rule(".*=ref0")};
    const auto expected = prompt_logits(model, options, prompt, 2);
    options.rules.clear();
    for (const std::string& isa : isas())
        for (int64_t max_batch : {1, 13, 512}) {
            options.devices = {2, isa};
            options.max_batch = max_batch;
            EXPECT_TRUE(same_bits(prompt_logits(model, options, prompt, 2), expected)) << isa << " " << max_batch;
        }
}

INSTANTIATE_TEST_SUITE_P(Types, CacheTypes,
                         testing::Values(ggmlx::DType::F32, ggmlx::DType::F16, ggmlx::DType::BF16,
                                         ggmlx::DType::F8_E4M3, ggmlx::DType::Q8_0),
                         [](const auto& one) { return std::string(ggmlx::name(one.param)); });

}  // namespace
}  // namespace e2e
