// The tensor tables of the dense families, and the registry.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ggmlx/core/error.h"
#include "src/arch/arch.h"

namespace llm {
namespace {

ModelConfig config_of(std::string_view architecture) {
    ModelConfig c;
    c.architecture = architecture;
    c.n_layer = 2;
    c.n_embd = 64;
    c.n_head = 8;
    c.n_head_kv = 4;
    c.head_dim = 16;
    c.n_ff = 172;
    c.n_vocab = 512;
    return c;
}

const TensorSpec* find(const std::vector<TensorSpec>& specs, std::string_view name) {
    auto it = std::find_if(specs.begin(), specs.end(), [&](const TensorSpec& s) { return s.name == name; });
    return it == specs.end() ? nullptr : &*it;
}

TEST(Architectures, AreTheFamiliesThatTheConfigKnows) {
    for (const Architecture* a : all_architectures()) {
        EXPECT_EQ(&architecture(a->name), a);
        const std::string config = R"({"num_hidden_layers": 1, "hidden_size": 64, "num_attention_heads": 32,
            "num_key_value_heads": 8, "head_dim": 4, "intermediate_size": 8, "vocab_size": 9, "num_local_experts": 8,
            "num_experts_per_tok": 2, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16,
            "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8, "model_type": ")" +
                                   std::string(a->name) + "\"}";
        EXPECT_EQ(ModelConfig::from_json(config).architecture, a->name);
    }
    try {
        architecture("bert");
        FAIL() << "bert is not known";
    } catch (const ggmlx::Error& error) {
        EXPECT_NE(std::string(error.what()).find("llama, mistral, qwen2, qwen3"), std::string::npos) << error.what();
    }
}

TEST(DenseTensors, HaveShapesRolesAndSources) {
    const auto specs = architecture("llama").tensors(config_of("llama"));
    EXPECT_EQ(specs.size(), 2u * 9 + 3);
    const TensorSpec* q = find(specs, "blk.1.attn_q.weight");
    ASSERT_TRUE(q);
    EXPECT_EQ(q->shape, (ggmlx::Shape{128, 64}));
    EXPECT_EQ(q->role, ggmlx::Role::Attention);
    EXPECT_EQ(q->sources, std::vector<std::string>{"model.layers.1.self_attn.q_proj.weight"});
    EXPECT_TRUE(q->quantizable);
    EXPECT_EQ(find(specs, "blk.0.attn_k.weight")->shape, (ggmlx::Shape{64, 64}));
    EXPECT_EQ(find(specs, "blk.0.attn_output.weight")->shape, (ggmlx::Shape{64, 128}));
    EXPECT_EQ(find(specs, "blk.0.ffn_down.weight")->shape, (ggmlx::Shape{64, 172}));
    EXPECT_FALSE(find(specs, "blk.0.ffn_norm.weight")->quantizable);
    EXPECT_EQ(find(specs, "output.weight")->role, ggmlx::Role::Output);
    std::set<std::string> names;
    for (const TensorSpec& spec : specs) EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
}

TEST(DenseTensors, HaveNoHeadWhenEmbeddingsAreTied) {
    ModelConfig c = config_of("llama");
    EXPECT_EQ(find(architecture("llama").tensors(c), "token_embd.weight")->tied_source, "");
    c.tie_embeddings = true;
    const auto specs = architecture("llama").tensors(c);
    EXPECT_EQ(find(specs, "output.weight"), nullptr);
    EXPECT_EQ(find(specs, "token_embd.weight")->tied_source, "lm_head.weight");
}

TEST(DenseTensors, HaveTheBiasesOfTheConfig) {
    ModelConfig c = config_of("llama");
    c.attention_bias = c.attention_out_bias = c.mlp_bias = true;
    const auto specs = architecture("llama").tensors(c);
    EXPECT_EQ(specs.size(), 2u * 16 + 3);
    EXPECT_EQ(find(specs, "blk.0.attn_k.bias")->shape, (ggmlx::Shape{64}));
    EXPECT_EQ(find(specs, "blk.0.attn_output.bias")->shape, (ggmlx::Shape{64}));
    EXPECT_EQ(find(specs, "blk.0.ffn_up.bias")->shape, (ggmlx::Shape{172}));
    EXPECT_FALSE(find(specs, "blk.0.attn_q.bias")->quantizable);
}

TEST(DenseTensors, NormaliseHeadsInQwen3) {
    ModelConfig c = config_of("qwen3");
    c.qk_norm = ModelConfig::QkNorm::PerHead;
    const auto specs = architecture("qwen3").tensors(c);
    EXPECT_EQ(find(specs, "blk.0.attn_q_norm.weight")->shape, (ggmlx::Shape{16}));
    EXPECT_EQ(find(specs, "blk.1.attn_k_norm.weight")->sources[0], "model.layers.1.self_attn.k_norm.weight");
    EXPECT_EQ(find(architecture("qwen2").tensors(config_of("qwen2")), "blk.0.attn_q_norm.weight"), nullptr);
}

TEST(DenseKvLayers, LieBesideTheirWeights) {
    const auto layers = architecture("mistral").kv_layers(config_of("mistral"));
    ASSERT_EQ(layers.size(), 2u);
    EXPECT_EQ(layers[1].n_head_kv, 4);
    EXPECT_EQ(layers[1].head_dim_k, 16);
    EXPECT_EQ(layers[1].head_dim_v, 16);
    EXPECT_EQ(layers[1].home, "blk.1.attn_k.weight");
}

}  // namespace
}  // namespace llm
