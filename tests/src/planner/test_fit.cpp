// A budget becomes rules: what goes to the card first, and that the outcome fits.

#include "src/planner/fit.h"

#include <gtest/gtest.h>

#include "ggmlx/backend/executor.h"
#include "ggmlx/backend/reference_backend.h"
#include "src/model.h"
#include "src/session/plan_report.h"

namespace llm {
namespace {

/// A card of any size that computes nothing.
class PaperCard : public ggmlx::Backend {
  public:
    explicit PaperCard(uint64_t free) : free_(free) {}
    const std::string& name() const override { return name_; }
    std::string description() const override { return "paper"; }
    uint64_t free_bytes() const override { return free_; }
    bool supports(const ggmlx::Node&) const override { return true; }
    size_t scratch_bytes(const ggmlx::Node&) const override { return 0; }
    std::shared_ptr<std::byte> alloc(size_t) override { return nullptr; }
    void upload(std::byte*, const void*, size_t) override {}
    void download(void*, const std::byte*, size_t) override {}
    bool reads_host_memory() const override { return false; }
    bool reaches_host() const override { return true; }
    void run(ggmlx::SegmentSource&) override {}

  private:
    uint64_t free_;
    std::string name_ = "cuda0";
};

constexpr const char* kMixture = R"({"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe",
    "hidden_size": 256, "intermediate_size": 512, "moe_intermediate_size": 128, "num_hidden_layers": 6,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "num_experts": 16, "num_experts_per_tok": 2,
    "norm_topk_prob": true, "decoder_sparse_step": 1, "mlp_only_layers": [], "vocab_size": 1000, "hidden_act": "silu",
    "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "max_position_embeddings": 4096, "tie_word_embeddings": false})";

class FitTest : public testing::Test {
  protected:
    Model model_{ModelConfig::from_json(kMixture), ggmlx::DType::Q8_0};
    EngineOptions options_;

    FitTest() {
        options_.n_ctx = 512;
        options_.max_batch = 32;
    }

    std::vector<std::string> rules(const FitOptions& how, uint64_t free = uint64_t{8} << 30) {
        std::vector<std::string> texts;
        for (const auto& rule : fit_to(how, free)) texts.push_back(rule.text);
        return texts;
    }
    std::vector<ggmlx::PlacementRule> fit_to(const FitOptions& how, uint64_t free) {
        devices_.clear();
        devices_.push_back(ggmlx::make_reference_backend("cpu"));
        devices_.push_back(std::make_unique<PaperCard>(free));
        return fit(model_.config(), model_.arch(), model_.weights(), options_, devices_, how);
    }
    /// Bytes that the card holds under rules, workspace included.
    uint64_t card_bytes(const std::vector<ggmlx::PlacementRule>& rules) {
        EngineOptions options = options_;
        options.rules.insert(options.rules.end(), rules.begin(), rules.end());
        const std::vector<std::string> names = {"cpu", "cuda0"};
        const Blueprint blueprint(model_.config(), model_.arch(), model_.weights(), options, names);
        std::vector<ggmlx::Backend*> backends = {devices_[0].get(), devices_[1].get()};
        uint64_t bytes = 0;
        for (const auto& d : plan_report(blueprint, options.rules, backends).devices)
            if (d.name == "cuda0") bytes = d.total_bytes();
        return bytes;
    }
    std::vector<std::unique_ptr<ggmlx::Backend>> devices_;
};

using Texts = std::vector<std::string>;

TEST_F(FitTest, WithoutACardThereAreNoRules) {
    devices_.push_back(ggmlx::make_reference_backend("cpu"));
    EXPECT_TRUE(fit(model_.config(), model_.arch(), model_.weights(), options_, devices_, {}).empty());
}

TEST_F(FitTest, WhatFitsGoesToTheCard) { EXPECT_EQ(rules({}), Texts{".*=cuda0"}); }

TEST_F(FitTest, ShorthandsBecomeRules) {
    EXPECT_EQ(rules({.cpu_moe = true}), (Texts{"^blk\\.(0|1|2|3|4|5)\\..*_exps\\.=cpu", ".*=cuda0"}));
    EXPECT_EQ(rules({.n_cpu_moe = 2}), (Texts{"^blk\\.(0|1)\\..*_exps\\.=cpu", ".*=cuda0"}));
    EXPECT_EQ(rules({.n_gpu_layers = 4}), (Texts{"^blk\\.(0|1)\\.=cpu", ".*=cuda0"}));
    EXPECT_EQ(rules({.n_gpu_layers = 0}), (Texts{"^blk\\.(0|1|2|3|4|5)\\.=cpu", ".*=cpu"}));
}

TEST_F(FitTest, FewerAndFewerExpertsAsTheBudgetShrinksAndItAlwaysFits) {
    const uint64_t all = card_bytes(fit_to({}, uint64_t{8} << 30));
    const uint64_t dense = card_bytes(fit_to({.cpu_moe = true}, uint64_t{8} << 30));
    ASSERT_LT(dense, all);
    uint64_t before = all;
    for (uint64_t budget = all; budget >= dense; budget -= (all - dense) / 13) {
        const uint64_t used = card_bytes(fit_to({.vram = budget}, uint64_t{8} << 30));
        EXPECT_LE(used, budget);
        EXPECT_LE(used, before);
        EXPECT_GT(used + (all - dense) / 24, budget) << "a quarter of a layer's experts would still have fitted";
        before = used;
    }
}

TEST_F(FitTest, WhereTheDensePartDoesNotFitWholeLayersStayBehind) {
    const uint64_t dense = card_bytes(fit_to({.cpu_moe = true}, uint64_t{8} << 30));
    const auto rules = fit_to({.vram = dense - dense / 8}, uint64_t{8} << 30);
    EXPECT_LE(card_bytes(rules), dense - dense / 8);
    EXPECT_EQ(rules.front().text.rfind("^blk\\.(0", 0), 0u) << rules.front().text;
}

TEST_F(FitTest, TooLittleForOneLayerIsRefusedWithTheNumbers) {
    try {
        fit_to({.vram = 1000}, uint64_t{8} << 30);
        FAIL() << "fitted into 1000 bytes";
    } catch (const ggmlx::Error& e) {
        EXPECT_EQ(e.kind(), ggmlx::ErrorKind::OutOfMemory);
        EXPECT_NE(std::string(e.what()).find("1000 that may be used"), std::string::npos) << e.what();
    }
}

TEST_F(FitTest, TheUsersRulesStayAndAreCounted) {
    options_.rules = ggmlx::parse_rules("blk.0..*_exps.=cpu");
    const uint64_t less = card_bytes(fit_to({}, uint64_t{8} << 30));
    options_.rules.clear();
    EXPECT_LT(less, card_bytes(fit_to({}, uint64_t{8} << 30)));
}

}  // namespace
}  // namespace llm
