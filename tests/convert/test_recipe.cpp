// Which tensor gets which type.

#include <gtest/gtest.h>

#include "convert/recipe.h"
#include "tests/convert/synthetic.h"

namespace convert {
namespace {

using ggmlx::DType;

std::vector<llm::TensorSpec> specs_with_rows(int64_t n_in) {
    auto spec = [](std::string name, ggmlx::Shape shape, ggmlx::Role role, bool quantizable) {
        return llm::TensorSpec{std::move(name), shape, role, {}, quantizable, {}};
    };
    return {spec("token_embd.weight", {40, n_in}, ggmlx::Role::Embedding, true),
            spec("blk.0.attn_norm.weight", {n_in}, ggmlx::Role::Norm, false),
            spec("blk.0.attn_q.weight", {64, n_in}, ggmlx::Role::Attention, true),
            spec("blk.1.attn_q.weight", {64, n_in}, ggmlx::Role::Attention, true),
            spec("output.weight", {40, n_in}, ggmlx::Role::Output, true)};
}

std::vector<TypeChoice> choose(const Recipe& recipe, int64_t n_in = 256) {
    return choose_types(recipe, specs_with_rows(n_in), [](const llm::TensorSpec&) { return DType::BF16; });
}

std::vector<DType> types(const std::vector<TypeChoice>& choices) {
    std::vector<DType> result;
    for (const TypeChoice& choice : choices) result.push_back(choice.dtype);
    return result;
}

Recipe recipe_of(std::optional<DType> type, const std::vector<std::string>& rules = {}) {
    Recipe recipe;
    recipe.type = type;
    for (const std::string& rule : rules) recipe.rules.push_back(parse_type_rule(rule));
    return recipe;
}

TEST(Recipe, KeepsTheSourcesTypeUnlessAsked) {
    EXPECT_EQ(types(choose({})), (std::vector{DType::BF16, DType::F32, DType::BF16, DType::BF16, DType::BF16}));
    EXPECT_EQ(types(choose(recipe_of(DType::Q8_0))),
              (std::vector{DType::Q8_0, DType::F32, DType::Q8_0, DType::Q8_0, DType::Q8_0}));
}

TEST(Recipe, TakesTheFirstRuleThatMatches) {
    const auto chosen = choose(recipe_of(DType::Q4_0, {R"(blk\.1\.=q8_0)", "attn_q=q6_k"}));
    EXPECT_EQ(types(chosen), (std::vector{DType::Q4_0, DType::F32, DType::Q6_K, DType::Q8_0, DType::Q4_0}));
}

TEST(Recipe, HonoursARuleThatEqualsTheDefault) {
    const auto chosen = choose(recipe_of(DType::Q4_0, {"attn_q=q4_0", ".*=q8_0"}));
    EXPECT_EQ(types(chosen), (std::vector{DType::Q8_0, DType::F32, DType::Q4_0, DType::Q4_0, DType::Q8_0}));
}

TEST(Recipe, HasTypesForEmbeddingAndOutputBelowRules) {
    Recipe recipe = recipe_of(DType::Q4_0);
    recipe.embedding_type = DType::Q8_0;
    recipe.output_type = DType::Q6_K;
    EXPECT_EQ(types(choose(recipe)), (std::vector{DType::Q8_0, DType::F32, DType::Q4_0, DType::Q4_0, DType::Q6_K}));
    recipe.rules.push_back(parse_type_rule("output=f16"));
    EXPECT_EQ(choose(recipe).back().dtype, DType::F16);
}

TEST(Recipe, FallsBackWhereRowsDoNotSuitTheBlocks) {
    for (const int64_t n_in : {1408, 1856, 2688, 100}) {
        const bool fits_256 = n_in % 256 == 0;
        EXPECT_EQ(choose(recipe_of(DType::Q4_K), n_in)[2].dtype, fits_256 ? DType::Q4_K : DType::Q4_1) << n_in;
        EXPECT_EQ(choose(recipe_of(DType::Q6_K), n_in)[2].dtype, fits_256 ? DType::Q6_K : DType::Q8_0) << n_in;
        EXPECT_EQ(choose(recipe_of(DType::Q4_K), n_in)[2].fell_back(), !fits_256) << n_in;
        EXPECT_EQ(choose(recipe_of(DType::Q4_0), n_in)[2].dtype, DType::Q4_0) << n_in;  // padded to whole blocks
        EXPECT_FALSE(choose(recipe_of(DType::Q4_0), n_in)[2].fell_back()) << n_in;
    }
}

TEST(Recipe, RefusesFallbacksWhenStrict) {
    Recipe recipe = recipe_of(DType::Q4_K, {"attn_q=q8_0"});
    recipe.strict_type = true;
    EXPECT_NO_THROW(choose(recipe, 512));
    const std::string message = error_of([&] { choose(recipe, 1408); });
    EXPECT_CONTAINS(message, "token_embd.weight");
    EXPECT_CONTAINS(message, "output.weight");
    EXPECT_CONTAINS(message, "1408");
    EXPECT_EQ(message.find("attn_q.weight"), std::string::npos);
}

TEST(Recipe, RefusesRulesThatDoNothing) {
    const std::string message = error_of([] { choose(recipe_of(DType::Q4_0, {"atn_q=q8_0"})); });
    EXPECT_CONTAINS(message, "\"atn_q=q8_0\" matches no tensor");
    EXPECT_CONTAINS(message, "blk.0.attn_q.weight");
    EXPECT_CONTAINS(error_of([] { choose(recipe_of(DType::Q4_0, {"norm=q8_0"})); }), "stay f32");
    EXPECT_NO_THROW(choose(recipe_of(DType::Q4_0, {".*=q8_0", "attn_q=q4_0"})));  // overruled is no mistake
}

TEST(Recipe, ParsesRules) {
    const TypeRule rule = parse_type_rule("a=b=Q4_K_M");
    EXPECT_EQ(rule.pattern, "a=b");
    EXPECT_EQ(rule.dtype, DType::Q4_K);
    EXPECT_EQ(parse_type_rule("[a,b]{1,2}=q8_0").pattern, "[a,b]{1,2}");
    for (const char* text : {"attn_q", "=q8_0", "attn_q=", "attn_q=q9_9", "attn_q=i32", "attn_q=f8_e4m3", "blk.(=q8_0"})
        EXPECT_THROW(parse_type_rule(text), ggmlx::Error) << text;
    EXPECT_CONTAINS(error_of([] { parse_weight_type("q5_k"); }), "q4_k, q6_k");
}

}  // namespace
}  // namespace convert
