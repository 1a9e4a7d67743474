// Experts dealt out to memory nodes give the bits of the reference with whole ones: every type that can be dealt out,
// sizes that nodes and tiles do not divide, few columns and many, biases, every ISA, teams of any size.

#include <list>

#include "ggmlx/backend/cpu_cases.h"
#include "ggmlx/backend/expert_shards.h"
#include "ggmlx/graph/expert_parts.h"

namespace ggmlx::test {
namespace {

/// Shards of the weights of a call, each in memory of its own size so that reading past an end is seen by sanitizers.
class DealtOutWeights {
  public:
    DealtOutWeights(OpCall& call, int n_shards) {
        const bool has_bias = call.param<ExpertsParams>().has_bias;
        deal_out(call.in[3], ShardAxis::Rows, n_shards);
        deal_out(call.in[4], ShardAxis::Rows, n_shards);
        const bool by_columns = keeps_partial_sums(call.in[5].dtype);
        deal_out(call.in[5], by_columns ? ShardAxis::Columns : ShardAxis::Rows, n_shards);
        for (size_t i = 6; i < (by_columns ? 8 : 9) && has_bias; ++i)
            deal_out(call.in[i], ShardAxis::Columns, n_shards);
    }

  private:
    std::list<std::vector<std::byte>> bytes_;

    void deal_out(TensorView& view, ShardAxis axis, int n_shards) {
        const bool is_bias = view.shape.rank() == 2;
        const ShardedMatrix matrix{view.dtype, is_bias ? 1 : view.shape[1], view.shape[-1], axis, n_shards};
        const int64_t slot_stride = matrix.shard_bytes(0) + 64, n_slots = view.shape[0];
        auto& bytes = bytes_.emplace_back(static_cast<size_t>(n_shards * n_slots * slot_stride), std::byte{0x7f});
        for (int shard = 0; shard < n_shards; ++shard)
            for (int64_t slot = 0; slot < n_slots; ++slot)
                cut_shard(matrix, shard, view.data + slot * view.slot_stride,
                          bytes.data() + (shard * n_slots + slot) * slot_stride);
        view.data = bytes.data();
        view.slot_stride = slot_stride;
        view.shard_stride = n_slots * slot_stride;
        view.n_shards = n_shards;
    }
};

struct ShardedCase {
    DType gate, down;
    int64_t n_ff;
    bool has_bias = false;
};
void PrintTo(const ShardedCase& c, std::ostream* out) { *out << name(c.gate) << name(c.down) << c.n_ff; }

class ShardedExperts : public testing::TestWithParam<ShardedCase> {
  protected:
    static constexpr int64_t kExperts = 5, kUsed = 2;

    /// A step of the op; the last expert is chosen by nobody, some slots are empty.
    static void build(OpCase& c, const ShardedCase& of, int64_t n_tokens, bool rows_only) {
        Random random(static_cast<unsigned>(of.n_ff + n_tokens));
        const int64_t n_embd = info(of.gate).block_len == 256 ? 256 : 72;
        const auto matrix = [&](DType type, int64_t n_out, int64_t n_in) {
            return c.weight(random_weight(random, type, {kExperts, n_out, n_in}));
        };
        const auto bias = [&](int64_t n) {
            if (!of.has_bias) return Tensor();
            Array values = random_array(random, {kExperts, n});
            values.slot_stride = n * static_cast<int64_t>(sizeof(float));
            return c.weight(std::move(values));
        };
        const ExpertWeights w{.gate = matrix(of.gate, of.n_ff, n_embd),
                              .up = matrix(of.gate, of.n_ff, n_embd),
                              .down = matrix(of.down, n_embd, of.n_ff),
                              .gate_bias = bias(of.n_ff),
                              .up_bias = bias(of.n_ff),
                              .down_bias = bias(n_embd)};
        const Tensor x = c.input(random_array(random, {n_tokens, n_embd}));
        std::vector<int32_t> ids;
        for (int64_t i = 0; i < n_tokens * kUsed; ++i)
            ids.push_back(i % 7 == 6 ? -1 : static_cast<int32_t>((i + i / 5) % (kExperts - 1)));
        const Tensor chosen = c.input(ints({n_tokens, kUsed}, ids));
        const SwiGLUParams clamped{.alpha = 1.702f, .clamp = 2.0f, .up_offset = 1.0f};
        if (rows_only)
            expert_rows(c.graph, w, x, chosen, c.input(ints({kExperts}, {3, 1, -1, 0, 4})), clamped);
        else
            experts(c.graph, w, x, chosen, c.input(random_array(random, {n_tokens, kUsed})));
    }
    /// Every ISA with more threads than shards, so that all have some; the first also with fewer.
    static void expect_same_on_all(const OpCase& c, const OpCase::Result& expected, int n_shards) {
        const NumaPlan plan{NumaPolicy::Shard, std::vector<int>(static_cast<size_t>(n_shards), 0), "", n_shards};
        for (const CpuKernels* kernels : supported_kernels()) {
            const bool first = kernels == supported_kernels().front();
            for (int n_threads : first ? std::vector<int>{1, n_shards - 1, n_shards + 1} : std::vector<int>{n_shards}) {
                const auto cpu = make_cpu_backend({.n_threads = n_threads, .isa = kernels->name, .pin = false}, plan);
                std::unique_ptr<DealtOutWeights> shards;
                const auto deal_out = [&](OpCall& call) { shards = std::make_unique<DealtOutWeights>(call, n_shards); };
                expect_same(expected, c.run_on(*cpu, deal_out),
                            std::to_string(n_shards) + " shards on " + cpu->description());
            }
        }
    }
};

TEST_P(ShardedExperts, GiveTheBitsOfWholeOnes) {
    for (int64_t n_tokens : {1, 3, 40})
        for (bool rows_only : {false, true}) {
            OpCase c;
            build(c, GetParam(), n_tokens, rows_only);
            const OpCase::Result expected = c.run_reference_op();
            for (int n_shards : {2, 4, 8}) {
                SCOPED_TRACE(testing::Message() << n_tokens << " tokens");
                expect_same_on_all(c, expected, n_shards);
            }
        }
}

std::vector<ShardedCase> sharded_cases() {
    std::vector<ShardedCase> cases;
    for (DType type : {DType::Q8_0, DType::Q4_0, DType::Q4_1, DType::MXFP4, DType::MXFP8})
        for (int64_t n_ff : {31, 300, 320}) cases.push_back({type, type, n_ff, n_ff == 300});
    for (int64_t n_ff : {768, 1408}) cases.push_back({DType::MXFP4, DType::MXFP4, n_ff});
    cases.push_back({DType::MXFP4, DType::MXFP4, 2880, true});
    for (DType down : {DType::F32, DType::F16, DType::BF16})
        for (int64_t n_ff : {31, 300}) cases.push_back({DType::Q8_0, down, n_ff, n_ff == 300});
    for (DType down : {DType::Q4_K, DType::Q6_K})
        for (int64_t n_ff : {256, 768}) cases.push_back({down, down, n_ff, n_ff == 768});
    for (DType gate : {DType::Q4_K, DType::Q6_K, DType::F16, DType::F32, DType::MXFP8})
        cases.push_back({gate, DType::Q8_0, 100, true});
    return cases;
}
INSTANTIATE_TEST_SUITE_P(Cases, ShardedExperts, testing::ValuesIn(sharded_cases()), [](const auto& param) {
    return std::string(name(param.param.gate)) + "_" + std::string(name(param.param.down)) + "_" +
           std::to_string(param.param.n_ff);
});

}  // namespace
}  // namespace ggmlx::test
