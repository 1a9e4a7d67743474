// The tensor tables of families with experts: names, shapes, sources, caches, and how many parameters published models
// have.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "src/arch/parameters.h"

namespace llm {
namespace {

ModelConfig published(const std::string& model) {
    std::ifstream file(std::string(GGMLX_TEST_DATA) + "/configs/" + model + "/config.json");
    EXPECT_TRUE(file.good()) << model;
    return ModelConfig::from_json(std::string(std::istreambuf_iterator<char>(file), {}));
}

struct Model {
    explicit Model(const std::string& name)
        : config(published(name)), specs(architecture(config.architecture).tensors(config)) {}
    const TensorSpec& at(const std::string& name) const {
        const auto it = std::find_if(specs.begin(), specs.end(), [&](const TensorSpec& s) { return s.name == name; });
        if (it == specs.end()) throw std::out_of_range(name);
        return *it;
    }
    bool has(const std::string& name) const {
        return std::any_of(specs.begin(), specs.end(), [&](const TensorSpec& s) { return s.name == name; });
    }

    ModelConfig config;
    std::vector<TensorSpec> specs;
};

/// Totals are those that the models' pages state, to the last digit where they give it.
TEST(Mixtures, HaveThePublishedNumbersOfParameters) {
    struct {
        const char* model;
        int64_t total, per_token;
    } const expected[] = {
        {"Mixtral-8x7B-v0.1", 46702792704, 12748853248},  {"Mixtral-8x22B-v0.1", 140620634112, 38955423744},
        {"Qwen3-30B-A3B", 30532122624, 3041867776},       {"Qwen3-30B-A3B-FP8", 30532122624, 3041867776},
        {"Qwen3-235B-A22B", 235093634560, 21568433664},   {"Qwen3-Coder-480B-A35B", 480154875392, 34541270528},
        {"gpt-oss-20b", 20914757184, 3608307264},         {"gpt-oss-120b", 116829156672, 5132849472},
        {"DeepSeek-V3", 671026419200, 36625618432},       {"DeepSeek-R1", 671026419200, 36625618432},
        {"Kimi-K2-Instruct", 1026408232448, 31687095808}, {"GLM-4.5-Air", 106852251264, 12803372672},
        {"MiniMax-M2.5", 228689764864, 10415956480},      {"MiniMax-M2.7", 228689764864, 10415956480}};
    for (const auto& e : expected) {
        const Model model(e.model);
        const ParameterCount count = count_parameters(model.config, model.specs);
        EXPECT_EQ(count.total, e.total) << e.model;
        EXPECT_EQ(count.per_token, e.per_token) << e.model;
        std::set<std::string> names;
        for (const TensorSpec& spec : model.specs) {
            EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
            EXPECT_TRUE(!spec.sources.empty() || !spec.packed.empty()) << spec.name;
        }
    }
}

TEST(Mixtures, StackOneMatrixPerExpert) {
    const Model m("Mixtral-8x7B-v0.1");
    const TensorSpec& up = m.at("blk.3.ffn_up_exps.weight");
    EXPECT_EQ(up.shape, (ggmlx::Shape{8, 14336, 4096}));
    EXPECT_EQ(up.role, ggmlx::Role::Expert);
    EXPECT_TRUE(up.quantizable);
    ASSERT_EQ(up.sources.size(), 8u);
    EXPECT_EQ(up.sources[7], "model.layers.3.block_sparse_moe.experts.7.w3.weight");
    EXPECT_EQ(up.packed.at(0).name, "model.layers.3.mlp.experts.gate_up_proj");
    EXPECT_EQ(m.at("blk.3.ffn_down_exps.weight").shape, (ggmlx::Shape{8, 4096, 14336}));
    const TensorSpec& router = m.at("blk.3.ffn_gate_inp.weight");
    EXPECT_EQ(router.sources, std::vector<std::string>{"model.layers.3.block_sparse_moe.gate.weight"});
    EXPECT_EQ(router.role, ggmlx::Role::Router);
    EXPECT_FALSE(router.quantizable);
}

TEST(Mixtures, HaveDenseLayersAndSharedExpertsWhereTheConfigSaysSo) {
    const Model glm("GLM-4.5-Air");
    EXPECT_TRUE(glm.has("blk.0.ffn_gate.weight"));
    EXPECT_FALSE(glm.has("blk.0.ffn_gate_inp.weight"));
    EXPECT_FALSE(glm.has("blk.1.ffn_gate.weight"));
    EXPECT_EQ(glm.at("blk.1.ffn_gate_shexp.weight").shape, (ggmlx::Shape{1408, 4096}));
    EXPECT_EQ(glm.at("blk.1.ffn_gate_shexp.weight").role, ggmlx::Role::SharedExpert);
    EXPECT_EQ(glm.at("blk.1.exp_probs_b.bias").sources[0], "model.layers.1.mlp.gate.e_score_correction_bias");
    EXPECT_FALSE(glm.has("blk.0.attn_q_norm.weight"));
    EXPECT_TRUE(glm.has("blk.0.attn_q.bias"));
    EXPECT_FALSE(glm.has("blk.0.attn_output.bias"));
}

TEST(Mixtures, OfGptOssLieInOneTensorPerLayer) {
    const Model m("gpt-oss-20b");
    const TensorSpec& up = m.at("blk.1.ffn_up_exps.weight");
    EXPECT_EQ(up.shape, (ggmlx::Shape{32, 2880, 2880}));
    EXPECT_TRUE(up.sources.empty());
    ASSERT_EQ(up.packed.size(), 2u);
    EXPECT_EQ(up.packed[1].form, PackedSource::Form::MXFP4);
    EXPECT_EQ(m.at("blk.1.ffn_down_exps.bias").shape, (ggmlx::Shape{32, 2880}));
    EXPECT_EQ(m.at("blk.1.ffn_down_exps.bias").role, ggmlx::Role::Expert);
    EXPECT_EQ(m.at("blk.1.attn_sinks.weight").shape, (ggmlx::Shape{64}));
    EXPECT_EQ(m.at("blk.1.ffn_gate_inp.bias").sources[0], "model.layers.1.mlp.router.bias");
}

TEST(LatentAttention, CachesOneRowPerTokenAndNoValues) {
    const Model m("DeepSeek-V3");
    EXPECT_EQ(m.at("blk.5.attn_k_b.weight").shape, (ggmlx::Shape{128, 512, 128}));
    EXPECT_EQ(m.at("blk.5.attn_v_b.weight").shape, (ggmlx::Shape{128, 128, 512}));
    EXPECT_EQ(m.at("blk.5.attn_kv_a_mqa.weight").shape, (ggmlx::Shape{576, 7168}));
    EXPECT_EQ(m.at("blk.5.attn_q_b.weight").shape, (ggmlx::Shape{128 * 192, 1536}));
    const auto layers = architecture("deepseek_v3").kv_layers(m.config);
    ASSERT_EQ(layers.size(), 61u);
    EXPECT_EQ(layers[5].n_head_kv, 1);
    EXPECT_EQ(layers[5].head_dim_k, 576);
    EXPECT_EQ(layers[5].head_dim_v, 0);
    EXPECT_EQ(layers[5].home, "blk.5.attn_kv_a_mqa.weight");
}

}  // namespace
}  // namespace llm
