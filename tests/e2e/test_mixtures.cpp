// Experts end to end: wherever each one lives the logits have the same bits; what a router cannot decide ends in an
// error; packed and float checkpoints are the same model.

#include <fmt/core.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "convert/checkpoint.h"
#include "ggmlx/core/error.h"
#include "support.h"

namespace e2e {
namespace {

class Mixtures : public testing::TestWithParam<std::string> {
  protected:
    const std::string checkpoint_ = "fixtures/" + GetParam();
    TempFolder folder_;
    const llm::Model model_ = llm::Model::open(make_model(folder_, checkpoint_, "f32"));
    const std::vector<llm::TokenId> prompt_ = reference_ids(checkpoint_, "p33.ids");

    std::vector<float> logits(const llm::EngineOptions& options) const {
        return prompt_logits(model_, options, prompt_, 3);
    }
    const std::vector<float> plain_ = logits(exact_options());
};

TEST_P(Mixtures, GiveTheSameBitsWhereverExpertsLive) {
    for (const char* rules :
         {"ffn_.*_exps\\.weight@0-3=ref0", "ffn_.*_exps@0-1=ref0,ffn_.*_exps@2-4=ref1", "exps=ref0",
          "ffn_(gate|up)_exps=ref0,ffn_down_exps=ref1", "ffn_gate_exps@0-2=ref0,ffn_up_exps@1-3=ref1",
          "ffn_down_exps\\.weight@5=ref1", "exps@1,3,5=ref1,attn=ref0", "ffn_gate_inp=ref1", "exps=ref0,.*=ref1"}) {
        llm::EngineOptions options = exact_options();
        options.rules = ggmlx::parse_rules(rules);
        for (int n_threads : {1, 3}) {
            options.devices.n_threads = n_threads;
            EXPECT_TRUE(same_bits(logits(options), plain_)) << rules << ", " << n_threads << " threads";
        }
    }
}

TEST_P(Mixtures, GiveTheSameBitsForRandomHomesOfSingleExperts) {
    std::mt19937 random(11);
    const char* const devices[] = {"cpu", "ref0", "ref1"};
    for (int round = 0; round < 8; ++round) {
        llm::EngineOptions options = exact_options();
        for (int32_t i = 0; i < model_.weights().size(); ++i) {
            const ggmlx::Tensor t = model_.weights()[i];
            if (t.info().role != ggmlx::Role::Expert || t.shape().rank() != 3) continue;
            for (int64_t e = 0; e < t.dim(0); ++e)
                options.rules.push_back(rule(fmt::format("^{}$@{}={}", t.name(), e, devices[random() % 3])));
        }
        EXPECT_TRUE(same_bits(logits(options), plain_)) << "round " << round;
    }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Mixtures, testing::Values("mixtral", "qwen2_moe", "gpt_oss", "deepseek_v3"),
                         [](const auto& fixture) { return fixture.param; });

/// Quantized experts too: their activations are quantized once, on whichever device.
TEST(QuantizedMixture, GivesTheSameBitsWhereverExpertsLive) {
    for (const char* type : {"q8_0", "mxfp4", "q4_1"}) {
        const TempFolder folder;
        const auto model = llm::Model::open(make_model(folder, "fixtures/gpt_oss", type));
        const auto prompt = reference_ids("fixtures/gpt_oss", "p33.ids");
        const auto expected = prompt_logits(model, exact_options(), prompt, 3);
        for (const char* rules : {".*=ref0", "exps\\.weight@0-2=ref0", "ffn_up_exps=ref1,attn=ref0"})
            for (int64_t max_batch : {1, 64}) {
                llm::EngineOptions options = exact_options();
                options.rules = ggmlx::parse_rules(rules);
                options.max_batch = max_batch;
                EXPECT_TRUE(same_bits(prompt_logits(model, options, prompt, 3), expected)) << type << " " << rules;
            }
    }
}

TEST(GptOss, IsTheSameModelPackedAndInFloats) {
    const TempFolder packed_folder, floats_folder, mxfp4_folder;
    const std::vector<llm::TokenId> prompt{1, 7, 3, 39, 0, 12, 5, 5, 30};
    const auto packed = llm::Model::open(make_model(packed_folder, "fixtures/gpt_oss_packed", "f32"));
    const auto floats = llm::Model::open(make_model(floats_folder, "fixtures/gpt_oss_unpacked", "f32"));
    const auto expected = prompt_logits(floats, exact_options(), prompt, 1);
    EXPECT_TRUE(same_bits(prompt_logits(packed, exact_options(), prompt, 1), expected));
    // As it was published: experts stay mxfp4, whose activations are rounded to int8.
    const auto native = llm::Model::open(make_model(mxfp4_folder, "fixtures/gpt_oss_packed"));
    const auto logits = prompt_logits(native, exact_options(), prompt, 1);
    float largest = 0;
    for (float v : expected) largest = std::max(largest, std::fabs(v));
    EXPECT_LT(max_difference(logits, expected), 0.1f * largest);
    EXPECT_GT(max_difference(logits, expected), 0.0f);
}

/// A copy of a fixture in which every value of one f32 tensor is `value`.
std::string with_filled_tensor(const TempFolder& folder, const std::string& fixture, const std::string& tensor,
                               float value) {
    const std::string to = folder.file("checkpoint");
    std::filesystem::copy(data_path("fixtures/" + fixture), to, std::filesystem::copy_options::recursive);
    const auto checkpoint = convert::Checkpoint::open(to);
    const auto& entry = *checkpoint.find(tensor);
    std::fstream file(to + "/model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(entry.tensor->offset));
    for (int64_t i = 0; i < entry.tensor->n_elements(); ++i) file.write(reinterpret_cast<const char*>(&value), 4);
    EXPECT_TRUE(file.good());
    return to;
}

TEST(Router, EndsWithAnErrorThatNamesLayerAndTokenWhenItsLogitsAreNotFinite) {
    const TempFolder folder;
    const std::string checkpoint =
        with_filled_tensor(folder, "mixtral", "model.layers.1.block_sparse_moe.gate.weight", 3e38f);
    const auto model = llm::Model::open(make_model_from(folder, checkpoint));
    for (const char* rules : {"", "blk\\.1\\.ffn_gate_inp=ref0"}) {
        llm::EngineOptions options = exact_options();
        if (*rules) options.rules = ggmlx::parse_rules(rules);
        llm::Engine engine(model, options);
        llm::Session session(engine);
        const std::vector<llm::TokenId> prompt{42, 7, 9};
        try {
            engine.eval({&session, prompt, 1});
            FAIL() << "no error";
        } catch (const ggmlx::Error& e) {
            EXPECT_EQ(e.kind(), ggmlx::ErrorKind::Device);
            const std::string message = e.what();
            EXPECT_NE(message.find("blk.1: router"), std::string::npos) << message;
            EXPECT_NE(message.find("NaN or infinite in row 0, token 42 at position 0"), std::string::npos) << message;
        }
        EXPECT_EQ(session.length(), 0) << "the session is as before";
    }
}

TEST(LatentAttention, KeepsOneRowPerTokenInItsCache) {
    const TempFolder folder;
    const auto model = llm::Model::open(make_model(folder, "fixtures/deepseek_v2"));
    const llm::Engine engine(model, exact_options());
    // 3 layers, 256 positions, 32 + 8 floats: no values beside the keys.
    EXPECT_EQ(engine.blueprint().cache().size_bytes(), 3u * 256 * 40 * 4);
    EXPECT_FALSE(engine.blueprint().tensors().find("blk.0.cache_v").has_value());
}

}  // namespace
}  // namespace e2e
