// config.json in Hugging Face's vocabulary: published files, defaults, spellings, and every refusal.

#include <gtest/gtest.h>

#include "tests/src/config/support.h"

namespace llm::test {
namespace {

using nlohmann::json;

json small(const std::string& model_type = "llama") {
    return {{"model_type", model_type}, {"num_hidden_layers", 4},
            {"hidden_size", 64},        {"num_attention_heads", 8},
            {"num_key_value_heads", 4}, {"intermediate_size", 172},
            {"vocab_size", 512},        {"max_position_embeddings", 512},
            {"hidden_act", "silu"},     {"head_dim", 8}};
}

TEST(ModelConfig, ReadsLlama31) {
    const auto c = parse(published("Llama-3.1-8B"));
    EXPECT_EQ(c.architecture, "llama");
    EXPECT_EQ(c.n_layer, 32);
    EXPECT_EQ(c.n_embd, 4096);
    EXPECT_EQ(c.n_head, 32);
    EXPECT_EQ(c.n_head_kv, 8);
    EXPECT_EQ(c.head_dim, 128);  // not in the file: hidden_size / heads
    EXPECT_EQ(c.n_ff, 14336);
    EXPECT_EQ(c.n_vocab, 128256);
    EXPECT_EQ(c.n_ctx_train, 131072);
    EXPECT_EQ(c.rms_norm_eps, 1e-5f);
    EXPECT_EQ(c.rope_theta, 500000.0f);
    EXPECT_EQ(c.rope_scaling.kind, RopeScaling::Kind::Llama3);
    EXPECT_EQ(c.rope_scaling.factor, 8.0f);
    EXPECT_EQ(c.rope_scaling.original_context, 8192);
    EXPECT_FALSE(c.tie_embeddings);
    EXPECT_EQ(c.window, std::vector<int64_t>(32, 0));
}

TEST(ModelConfig, ReadsEveryPublishedConfigOfAKnownFamily) {
    struct Expected {
        std::string model, architecture;
        int64_t n_layer, head_dim;
        bool tied;
    };
    for (const Expected& e :
         {Expected{"Llama-3.1-70B", "llama", 80, 128, false}, Expected{"SmolLM2-135M", "llama", 30, 64, true},
          Expected{"Qwen3-0.6B", "qwen3", 28, 128, true}, Expected{"Qwen3-1.7B", "qwen3", 28, 128, true},
          Expected{"Qwen3-8B", "qwen3", 36, 128, false}, Expected{"Qwen3-32B", "qwen3", 64, 128, false}}) {
        const auto c = parse(published(e.model));
        EXPECT_EQ(c.architecture, e.architecture) << e.model;
        EXPECT_EQ(c.n_layer, e.n_layer) << e.model;
        EXPECT_EQ(c.head_dim, e.head_dim) << e.model;
        EXPECT_EQ(c.tie_embeddings, e.tied) << e.model;
        EXPECT_FALSE(c.attention_bias) << e.model;
    }
}

TEST(ModelConfig, NamesTheKnownFamiliesWhenItMeetsAnother) {
    const std::string message = unsupported(small("bert"));
    EXPECT_TRUE(contains(message, "llama, mistral, qwen2, qwen3, mixtral")) << message;
}

TEST(ModelConfig, SaysThatANestedTextModelIsNotSupported) {
    const std::string message = unsupported(published("gemma-4-26B-A4B"));
    EXPECT_TRUE(contains(message, "multimodal") && contains(message, "gemma4_text")) << message;
}

TEST(ModelConfig, TakesTransformersDefaultsForWhatIsMissing) {
    json c = small();
    c.erase("head_dim");
    c.erase("num_key_value_heads");
    c.erase("max_position_embeddings");
    c.erase("hidden_act");
    const auto parsed = parse(c);
    EXPECT_EQ(parsed.head_dim, 8);
    EXPECT_EQ(parsed.n_head_kv, 8);
    EXPECT_EQ(parsed.n_ctx_train, 2048);
    EXPECT_EQ(parsed.rope_theta, 10000.0f);
    EXPECT_EQ(parsed.rms_norm_eps, 1e-6f);
    EXPECT_FALSE(parsed.tie_embeddings);

    json qwen = small("qwen3");
    qwen.erase("head_dim");
    EXPECT_EQ(parse(qwen).head_dim, 128);
    qwen["head_dim"] = nullptr;
    EXPECT_EQ(parse(qwen).head_dim, 8);
}

TEST(ModelConfig, ReadsAllSpellingsOfRopeScaling) {
    json older = small(), newer = small(), newest = small();
    older["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
    newer["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 2}};
    newest["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 2.0}, {"rope_theta", 1e6}};
    for (const json& config : {older, newer, newest}) {
        const auto c = parse(config);
        EXPECT_EQ(c.rope_scaling.kind, RopeScaling::Kind::Linear);
        EXPECT_EQ(c.rope_scaling.factor, 2.0f);
    }
    EXPECT_EQ(parse(older).rope_theta, 10000.0f);
    EXPECT_EQ(parse(newest).rope_theta, 1e6f);

    json plain = small();
    plain["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 5e5}};
    EXPECT_EQ(parse(plain).rope_scaling.kind, RopeScaling::Kind::None);
    EXPECT_EQ(parse(plain).rope_theta, 5e5f);
}

TEST(ModelConfig, ReadsYarn) {
    json c = small("qwen2");
    c["max_position_embeddings"] = 131072;
    c["rope_scaling"] = {{"type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 32768}};
    auto parsed = parse(c).rope_scaling;
    EXPECT_EQ(parsed.kind, RopeScaling::Kind::Yarn);
    EXPECT_EQ(parsed.original_context, 32768);
    EXPECT_EQ(parsed.beta_fast, 32.0f);
    EXPECT_EQ(parsed.attention_factor, 0.0f);
    c["rope_scaling"].erase("factor");
    EXPECT_EQ(parse(c).rope_scaling.factor, 4.0f);
    c["rope_scaling"].update({{"mscale", 1.0}, {"mscale_all_dim", 1.0}});
    EXPECT_EQ(parse(c).rope_scaling.attention_factor, 1.0f);
}

TEST(ModelConfig, RefusesRopeTypesItDoesNotKnow) {
    json c = small();
    c["rope_scaling"] = {{"rope_type", "longrope"}, {"factor", 2.0}};
    EXPECT_TRUE(contains(unsupported(c), "longrope"));
    c["rope_scaling"] = {{"rope_type", "llama3"}, {"factor", 8.0}};
    EXPECT_TRUE(contains(corrupt(c), "low_freq_factor"));
    c["rope_scaling"] = {{"rope_type", "linear"}};
    EXPECT_TRUE(contains(corrupt(c), "factor"));
    c["rope_scaling"] = nullptr;
    c["partial_rotary_factor"] = 0.5;
    EXPECT_TRUE(contains(unsupported(c), "partial_rotary_factor"));
}

TEST(ModelConfig, KnowsWhichBiasesAFamilyHas) {
    json c = small();
    c["attention_bias"] = true;
    c["mlp_bias"] = true;
    EXPECT_TRUE(parse(c).attention_bias && parse(c).attention_out_bias && parse(c).mlp_bias);
    c["model_type"] = "mistral";
    EXPECT_FALSE(parse(c).attention_bias || parse(c).attention_out_bias || parse(c).mlp_bias);
    c["model_type"] = "qwen3";
    EXPECT_TRUE(parse(c).attention_bias && parse(c).attention_out_bias);
    EXPECT_FALSE(parse(c).mlp_bias);
    c["model_type"] = "qwen2";
    c["attention_bias"] = false;
    EXPECT_TRUE(parse(c).attention_bias);
    EXPECT_FALSE(parse(c).attention_out_bias);
}

TEST(ModelConfig, GivesEveryLayerItsWindow) {
    json mistral = small("mistral");
    mistral["sliding_window"] = 100;
    EXPECT_EQ(parse(mistral).window, std::vector<int64_t>(4, 100));
    mistral["sliding_window"] = nullptr;
    EXPECT_EQ(parse(mistral).window, std::vector<int64_t>(4, 0));
    mistral.erase("sliding_window");
    EXPECT_EQ(parse(mistral).window, std::vector<int64_t>(4, 4096));

    json qwen = small("qwen2");
    qwen["sliding_window"] = 32;
    qwen["max_window_layers"] = 1;
    EXPECT_EQ(parse(qwen).window, std::vector<int64_t>(4, 0));  // use_sliding_window is not set
    qwen["use_sliding_window"] = true;
    EXPECT_EQ(parse(qwen).window, (std::vector<int64_t>{0, 32, 32, 32}));
    qwen["layer_types"] = {"full_attention", "sliding_attention", "full_attention", "sliding_attention"};
    EXPECT_EQ(parse(qwen).window, (std::vector<int64_t>{0, 32, 0, 32}));
    qwen["layer_types"] = {"full_attention"};
    EXPECT_TRUE(contains(corrupt(qwen), "1 entries for 4 layers"));
    qwen["layer_types"] = {"full_attention", "linear_attention", "full_attention", "full_attention"};
    EXPECT_TRUE(contains(unsupported(qwen), "layer_types[1]"));

    json llama = small();
    llama["sliding_window"] = 32;
    EXPECT_EQ(parse(llama).window, std::vector<int64_t>(4, 0));
}

TEST(ModelConfig, RefusesImpossibleNumbersByName) {
    const std::vector<std::pair<std::string, json>> cases = {{"num_hidden_layers", 0},
                                                             {"num_hidden_layers", 1000000},
                                                             {"hidden_size", -64},
                                                             {"hidden_size", 64.5},
                                                             {"hidden_size", "64"},
                                                             {"num_attention_heads", 0},
                                                             {"num_key_value_heads", 3},
                                                             {"num_key_value_heads", 0},
                                                             {"vocab_size", 0},
                                                             {"vocab_size", 9223372036854775808u},
                                                             {"intermediate_size", 1LL << 40},
                                                             {"head_dim", 7},
                                                             {"head_dim", 0},
                                                             {"rms_norm_eps", -1.0},
                                                             {"rope_theta", 0.0},
                                                             {"max_position_embeddings", 0},
                                                             {"tie_word_embeddings", 1},
                                                             {"rope_scaling", "linear"}};
    for (const auto& [field, value] : cases) {
        json c = small();
        c[field] = value;
        EXPECT_TRUE(contains(corrupt(c), field)) << field << " = " << value;
    }
    for (const char* field :
         {"num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size", "intermediate_size", "model_type"}) {
        json c = small();
        c.erase(field);
        EXPECT_TRUE(contains(corrupt(c), field)) << field;
    }
    json c = small();
    c["hidden_act"] = "gelu";
    EXPECT_TRUE(contains(unsupported(c), "gelu"));
    c = small();
    c.erase("head_dim");
    c["hidden_size"] = 65;
    EXPECT_TRUE(contains(corrupt(c), "hidden_size 65"));
}

TEST(ModelConfig, RefusesWhatIsNoJsonObject) {
    for (const char* text : {"", "[]", "{", "null", "{\"model_type\": \"llama\"} x", "\xff"})
        EXPECT_THROW(ModelConfig::from_json(text), ggmlx::Error) << text;
    EXPECT_THROW(ModelConfig::from_json(std::string(100000, '[')), ggmlx::Error);
}

TEST(GenerationConfig, PrefersItsOwnFileAndFallsBackToTheModels) {
    const std::string config = R"({"bos_token_id": 1, "eos_token_id": 2})";
    auto g = GenerationConfig::from_json(R"({"eos_token_id": [7, 8], "temperature": 0.6, "top_k": 20, "top_p": 0.95,
                                             "do_sample": true})",
                                         config);
    EXPECT_EQ(g.bos_id, 1);
    EXPECT_EQ(g.eos_ids, (std::vector<int32_t>{7, 8}));
    EXPECT_EQ(g.temperature, 0.6f);
    EXPECT_EQ(g.top_k, 20);
    EXPECT_EQ(g.top_p, 0.95f);
    EXPECT_FALSE(g.min_p.has_value());
    EXPECT_TRUE(g.do_sample);

    g = GenerationConfig::from_json("", config);
    EXPECT_EQ(g.eos_ids, std::vector<int32_t>{2});
    EXPECT_FALSE(g.do_sample);
    g = GenerationConfig::from_json("", "");
    EXPECT_FALSE(g.bos_id.has_value());
    EXPECT_TRUE(g.eos_ids.empty());
    EXPECT_EQ(GenerationConfig::from_json(R"({"eos_token_id": null})", config).eos_ids, std::vector<int32_t>{2});
    EXPECT_THROW(GenerationConfig::from_json("{", config), ggmlx::Error);
    EXPECT_THROW(GenerationConfig::from_json(R"({"eos_token_id": [-1]})", config), ggmlx::Error);
}

// Expected values: the formulas of transformers' rope utilities, evaluated by numpy in float32. The power may be one
// unit in the last place off, and at most eight roundings follow it.
void expect_frequencies(const RopeFrequencies& f, const std::vector<std::pair<size_t, float>>& expected) {
    for (const auto& [i, value] : expected) EXPECT_NEAR(f.inv_freq.at(i), value, value * 0x1p-21f) << "pair " << i;
}

RopeScaling scaling(RopeScaling::Kind kind, float factor, int64_t original_context) {
    RopeScaling s;
    s.kind = kind;
    s.factor = factor;
    s.original_context = original_context;
    return s;
}

TEST(RopeFrequencies, MatchTransformers) {
    RopeScaling s;
    const auto plain = rope_frequencies(10000.0f, 128, s);
    ASSERT_EQ(plain.inv_freq.size(), 64u);
    EXPECT_EQ(plain.magnitude, 1.0f);
    expect_frequencies(plain, {{0, 1.0f}, {1, 0x1.bb5faep-1f}, {31, 0x1.7a6622p-7f}, {63, 0x1.e459c4p-14f}});

    s.kind = RopeScaling::Kind::Linear;
    s.factor = 4.0f;
    expect_frequencies(rope_frequencies(10000.0f, 128, s), {{0, 0.25f}, {63, 0x1.e459c4p-16f}});

    s = scaling(RopeScaling::Kind::Llama3, 8.0f, 8192);
    expect_frequencies(rope_frequencies(500000.0f, 128, s), {{0, 1.0f},
                                                             {20, 0x1.0f5386p-6f},
                                                             {30, 0x1.67a23ap-10f},
                                                             {32, 0x1.132ba4p-11f},
                                                             {34, 0x1.765ba4p-13f},
                                                             {63, 0x1.4985fep-22f}});
}

TEST(RopeFrequencies, YarnMatchesTransformers) {
    const RopeScaling s = scaling(RopeScaling::Kind::Yarn, 4.0f, 32768);
    const auto f = rope_frequencies(1e6f, 128, s);
    expect_frequencies(f, {{0, 1.0f},
                           {20, 0x1.b4f7e4p-7f},
                           {25, 0x1.0ec710p-8f},
                           {30, 0x1.17040ep-10f},
                           {39, 0x1.103a14p-14f},
                           {63, 0x1.4d1c98p-22f}});
    EXPECT_FLOAT_EQ(f.magnitude, 1.138629436111989f);
}

TEST(RopeFrequencies, RefuseAnOddNumberOfValues) {
    EXPECT_THROW(rope_frequencies(10000.0f, 7, {}), ggmlx::Error);
    EXPECT_THROW(rope_frequencies(10000.0f, 0, {}), ggmlx::Error);
}

}  // namespace
}  // namespace llm::test
