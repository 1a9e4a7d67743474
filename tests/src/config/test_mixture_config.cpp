// What config.json says of experts, latent attention and the other traits of families with experts.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/src/config/support.h"

namespace llm::test {
namespace {

using nlohmann::json;
using Score = ggmlx::RouterParams::Score;

#define EXPECT_CONTAINS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)

TEST(MixtureConfig, OfMixtral) {
    const auto c = parse(published("Mixtral-8x7B-v0.1"));
    EXPECT_EQ(c.mixture.n_expert, 8);
    EXPECT_EQ(c.mixture.router.k, 2);
    EXPECT_EQ(c.mixture.n_ff, 14336);
    EXPECT_EQ(c.mixture.router.score, Score::Softmax);
    EXPECT_TRUE(c.mixture.router.normalize);
    EXPECT_EQ(c.mixture.n_ff_shared, 0);
    EXPECT_EQ(c.window, std::vector<int64_t>(32, 0));
    EXPECT_TRUE(c.mixture.in_layer(0) && c.mixture.in_layer(31));
}

TEST(MixtureConfig, OfQwen3) {
    json config = published("Qwen3-30B-A3B");
    const auto c = parse(config);
    EXPECT_EQ(c.mixture.n_expert, 128);
    EXPECT_EQ(c.mixture.router.k, 8);
    EXPECT_EQ(c.mixture.n_ff, 768);
    EXPECT_TRUE(c.mixture.router.normalize);
    EXPECT_EQ(c.qk_norm, ModelConfig::QkNorm::PerHead);
    config["decoder_sparse_step"] = 2;
    config["mlp_only_layers"] = {3, 5};
    const auto sparse = parse(config).mixture;
    EXPECT_FALSE(sparse.in_layer(0));
    EXPECT_TRUE(sparse.in_layer(1));
    EXPECT_FALSE(sparse.in_layer(3));
    EXPECT_FALSE(sparse.in_layer(5));
    EXPECT_TRUE(sparse.in_layer(7));
    config["use_sliding_window"] = true;
    EXPECT_CONTAINS(unsupported(config), "use_sliding_window");
}

TEST(MixtureConfig, OfGptOss) {
    json config = published("gpt-oss-20b");
    const auto c = parse(config);
    EXPECT_EQ(c.mixture.n_expert, 32);
    EXPECT_EQ(c.mixture.router.k, 4);
    EXPECT_EQ(c.mixture.router.score, Score::SoftmaxOfChosen);
    EXPECT_TRUE(c.mixture.router_bias && c.mixture.expert_bias && c.attention_sinks);
    EXPECT_TRUE(c.attention_bias && c.attention_out_bias);
    EXPECT_EQ(c.mixture.activation.alpha, 1.702f);
    EXPECT_EQ(c.mixture.activation.clamp, 7.0f);
    EXPECT_EQ(c.mixture.activation.up_offset, 1.0f);
    EXPECT_EQ(c.window[0], 128);
    EXPECT_EQ(c.window[1], 0);
    EXPECT_FALSE(c.rope_scaling.truncate);
    config.erase("layer_types");
    EXPECT_EQ(parse(config).window, c.window) << "alternating windows are the default";
    config.erase("swiglu_limit");
    EXPECT_EQ(parse(config).mixture.activation.clamp, 7.0f);
}

TEST(MixtureConfig, OfDeepSeekV3) {
    json config = published("DeepSeek-V3");
    const auto c = parse(config);
    EXPECT_EQ(c.latent.q_rank, 1536);
    EXPECT_EQ(c.latent.kv_rank, 512);
    EXPECT_TRUE(c.latent.interleaved);
    EXPECT_EQ(c.head_dim, 192);
    EXPECT_EQ(c.n_rot, 64);
    const auto& r = c.mixture.router;
    EXPECT_EQ(c.mixture.n_expert, 256);
    EXPECT_EQ(r.k, 8);
    EXPECT_EQ(r.score, Score::Sigmoid);
    EXPECT_EQ(r.n_groups, 8);
    EXPECT_EQ(r.groups_used, 4);
    EXPECT_EQ(r.group_best, 2);
    EXPECT_TRUE(r.normalize && c.mixture.selection_bias);
    EXPECT_EQ(r.scale, 2.5f);
    EXPECT_EQ(c.mixture.n_ff_shared, 2048);
    EXPECT_FALSE(c.mixture.in_layer(2));
    EXPECT_TRUE(c.mixture.in_layer(3));
    EXPECT_EQ(c.n_mtp_layers, 1);
    EXPECT_EQ(c.rope_scaling.attention_factor, 1.0f);
    const double m = 0.1 * std::log(40.0) + 1;
    EXPECT_FLOAT_EQ(c.attention_scale, static_cast<float>(m * m / std::sqrt(192.0)));

    config["attention_bias"] = true;
    EXPECT_CONTAINS(unsupported(config), "attention_bias");
    config = published("DeepSeek-V3");
    config["scoring_func"] = "softmax";
    EXPECT_CONTAINS(unsupported(config), "scoring_func");
    config = published("DeepSeek-V3");
    config["n_group"] = 7;
    EXPECT_CONTAINS(corrupt(config), "n_group");
    config["n_group"] = 128;
    config["topk_group"] = 2;
    EXPECT_CONTAINS(corrupt(config), "topk_group 2");
    config.erase("kv_lora_rank");
    EXPECT_CONTAINS(corrupt(config), "kv_lora_rank");
}

TEST(MixtureConfig, OfDeepSeekV2RefusesWhatImplementationsDisagreeOn) {
    json config = published("DeepSeek-V3");
    config["model_type"] = "deepseek_v2";
    config["scoring_func"] = "softmax";
    config["topk_method"] = "group_limited_greedy";
    config["norm_topk_prob"] = false;
    const auto c = parse(config);
    EXPECT_EQ(c.mixture.router.score, Score::Softmax);
    EXPECT_EQ(c.mixture.router.group_best, 1);
    EXPECT_FALSE(c.mixture.selection_bias);
    config["topk_method"] = "greedy";
    EXPECT_EQ(parse(config).mixture.router.n_groups, 1);
    config["topk_method"] = "noaux_tc";
    EXPECT_CONTAINS(unsupported(config), "noaux_tc");
    config["topk_method"] = "greedy";
    config["norm_topk_prob"] = true;
    EXPECT_CONTAINS(unsupported(config), "norm_topk_prob");
}

TEST(MixtureConfig, OfKimiK2) {
    const auto c = parse(published("Kimi-K2-Instruct"));
    EXPECT_EQ(c.architecture, "kimi_k2");
    EXPECT_EQ(c.mixture.n_expert, 384);
    EXPECT_EQ(c.mixture.router.n_groups, 1);
    EXPECT_EQ(c.n_mtp_layers, 0);
}

TEST(MixtureConfig, OfGlm45Air) {
    const auto c = parse(published("GLM-4.5-Air"));
    EXPECT_EQ(c.head_dim, 128);
    EXPECT_EQ(c.n_rot, 64);
    EXPECT_EQ(c.qk_norm, ModelConfig::QkNorm::None);
    EXPECT_TRUE(c.attention_bias);
    EXPECT_FALSE(c.attention_out_bias);
    EXPECT_FALSE(c.mixture.in_layer(0));
    EXPECT_TRUE(c.mixture.in_layer(1));
    EXPECT_EQ(c.n_mtp_layers, 1);
}

TEST(MixtureConfig, OfMiniMaxM2) {
    json config = published("MiniMax-M2.5");
    const auto c = parse(config);
    EXPECT_EQ(c.n_rot, 64);
    EXPECT_EQ(c.qk_norm, ModelConfig::QkNorm::Whole);
    EXPECT_EQ(c.mixture.router.score, Score::Sigmoid);
    EXPECT_EQ(c.n_mtp_layers, 3);
    config["attn_type_list"] = {1, 0};
    EXPECT_CONTAINS(unsupported(config), "attn_type_list");
    config = published("MiniMax-M2.5");
    config["rotary_dim"] = 63;
    EXPECT_CONTAINS(corrupt(config), "63 values");
}

TEST(MixtureConfig, RefusesImpossibleNumbersByName) {
    for (const auto& [field, value] : std::vector<std::pair<std::string, json>>{{"num_experts", 0},
                                                                                {"num_experts_per_tok", 129},
                                                                                {"moe_intermediate_size", 0},
                                                                                {"decoder_sparse_step", 0}}) {
        json config = published("Qwen3-30B-A3B");
        config[field] = value;
        EXPECT_CONTAINS(corrupt(config), field);
    }
    json config = published("Qwen3-30B-A3B");
    config["moe_intermediate_size"] = (1LL << 31) - 1;
    config["hidden_size"] = (1LL << 31) - 1;
    EXPECT_CONTAINS(corrupt(config), "too large");
    config = published("DeepSeek-V3");
    config["v_head_dim"] = 1 << 20;
    config["num_attention_heads"] = config["num_key_value_heads"] = 1 << 20;
    EXPECT_CONTAINS(corrupt(config), "too large");
    config = published("Qwen3-30B-A3B");
    config.erase("num_experts");
    EXPECT_CONTAINS(corrupt(config), "num_experts");
}

TEST(MixtureConfig, OfADenseModelIsEmpty) {
    const auto c = parse(published("Qwen3-8B"));
    EXPECT_EQ(c.mixture.n_expert, 0);
    EXPECT_FALSE(c.mixture.in_layer(0));
    EXPECT_FALSE(static_cast<bool>(c.latent));
    EXPECT_EQ(c.n_rot, 128);
    EXPECT_FLOAT_EQ(c.attention_scale, 1 / std::sqrt(128.0f));
}

}  // namespace
}  // namespace llm::test
