// Whole models with --fast-bf16, where the processor has products in bf16: prompts come near the exact ones, single
// tokens are exact.

#include <cmath>

#include "support.h"

namespace e2e {
namespace {

class FastBf16 : public testing::TestWithParam<std::string> {
  protected:
    const TempFolder folder_;
    const llm::Model model_ = llm::Model::open(make_model(folder_, "fixtures/llama_k", GetParam()));
    const std::vector<llm::TokenId> prompt_ = reference_ids("fixtures/llama_k", "p150.ids");

    static llm::EngineOptions options(const std::string& isa, bool fast) {
        llm::EngineOptions o = exact_options();
        o.devices.isa = isa;
        o.devices.fast_bf16 = fast;
        return o;
    }
    bool has_effect(const std::string& isa) const {
        return llm::Engine(model_, options(isa, true)).start_line().find("with fast bf16 products") !=
               std::string::npos;
    }
};

double norm(std::span<const float> v) {
    double sum = 0;
    for (const float x : v) sum += static_cast<double>(x) * static_cast<double>(x);
    return std::sqrt(sum);
}

TEST_P(FastBf16, KeepsLogitsNearTheExactOnes) {
    int n_tried = 0;
    for (const std::string& isa : isas()) {
        if (!has_effect(isa)) continue;
        ++n_tried;
        const auto exact = prompt_logits(model_, options(isa, false), prompt_, 40);
        auto difference = prompt_logits(model_, options(isa, true), prompt_, 40);
        for (size_t i = 0; i < exact.size(); ++i) difference[i] -= exact[i];
        // A product adds at most two roundings to bf16 (2^-9 each) to those that the exact one makes, which with int8
        // activations are up to 2^-8; seven products per layer and the head, one after the other, add up at most.
        const double n_products = 7 * static_cast<double>(model_.config().n_layer) + 1;
        EXPECT_LE(norm(difference), n_products * 0x1p-7 * norm(exact)) << isa;
    }
    if (n_tried == 0) GTEST_SKIP() << "this processor has no products in bf16";
}

TEST_P(FastBf16, ChangesNoSingleToken) {
    int n_tried = 0;
    const auto first = std::span(prompt_).first(9);
    for (const std::string& isa : isas()) {
        if (!has_effect(isa)) continue;
        ++n_tried;
        llm::EngineOptions fast = options(isa, true), exact = options(isa, false);
        fast.max_batch = exact.max_batch = 1;
        EXPECT_TRUE(same_bits(prompt_logits(model_, fast, first, 1), prompt_logits(model_, exact, first, 1))) << isa;
    }
    if (n_tried == 0) GTEST_SKIP() << "this processor has no products in bf16";
}

INSTANTIATE_TEST_SUITE_P(Types, FastBf16, testing::Values("f16", "bf16", "q8_0", "q4_0", "mxfp4", "mxfp8"),
                         [](const auto& type) { return type.param; });

}  // namespace
}  // namespace e2e
