// Products in bf16: their bodies over an emulation of the instructions, on any machine, and the kernels themselves
// where the processor has them.

#include "ggmlx/backend/bf16_emulation.h"
#include "ggmlx/backend/cpu/cpu_backend.h"
#include "ggmlx/backend/cpu/dispatch.h"
#include "ggmlx/backend/cpu/ops/activations.h"
#include "ggmlx/backend/cpu/self_check.h"
#include "ggmlx/backend/cpu/table.h"
#include "ggmlx/backend/host_memory.h"
#include "ggmlx/backend/op_case.h"
#include "ggmlx/core/error.h"
#include "ggmlx/graph/ops.h"

namespace ggmlx::test {
namespace {

/// The ops of the CPU with a given table, on two threads.
class TableBackend : public Backend {
  public:
    explicit TableBackend(const CpuKernels& kernels) : kernels_(kernels) {}
    const std::string& name() const override { return name_; }
    std::string description() const override { return kernels_.bf16.name; }
    uint64_t free_bytes() const override { return free_host_bytes(); }
    bool supports(const Node& node) const override { return cpu::row(node.op).supports(node); }
    size_t scratch_bytes(const Node& node) const override {
        return cpu::row(node.op).scratch_bytes(node, {kernels_, team_.n_threads()});
    }
    std::shared_ptr<std::byte> alloc(size_t size_bytes) override { return alloc_host(name_, size_bytes); }
    void upload(std::byte* device, const void* host, size_t n) override { std::memcpy(device, host, n); }
    void download(void* host, const std::byte* device, size_t n) override { std::memcpy(host, device, n); }
    bool reads_host_memory() const override { return true; }
    void run(SegmentSource& source) override {
        for (auto calls = source.next(); !calls.empty(); calls = source.next())
            for (OpCall* call : calls)
                team_.run([&](Member& member) {
                    cpu::Worker worker{kernels_, member};
                    member.fork();
                    if (const auto light = cpu::row(call->op).light) light(*call, worker);
                    member.barrier();
                    if (const auto heavy = cpu::row(call->op).heavy) heavy(*call, worker);
                    member.join();
                });
    }

  private:
    const std::string name_ = "table";
    const CpuKernels kernels_;
    Team team_{2};
};

/// Who multiplies: the emulated instructions, or the processor's own.
enum class Who { EmulatedPairs, EmulatedTiles, Avx512, Amx };
constexpr Who kEveryone[] = {Who::EmulatedPairs, Who::EmulatedTiles, Who::Avx512, Who::Amx};

std::string name_of(Who who) {
    constexpr const char* kNames[] = {"EmulatedPairs", "EmulatedTiles", "Avx512", "Amx"};
    return kNames[static_cast<size_t>(who)];
}

/// Empty if this processor has no such kernels.
std::optional<CpuKernels> kernels_of(Who who) {
    CpuKernels kernels = scalar_kernels;
    if (who == Who::EmulatedPairs) kernels.bf16 = make_bf16_pairs<EmulatedBf16>("emulated_pairs");
    if (who == Who::EmulatedTiles) kernels.bf16 = make_bf16_tiles<EmulatedBf16>("emulated_tiles");
    for (const CpuKernels* found : supported_kernels())
        if (found->name == std::string_view(who == Who::Avx512 ? "avx512" : who == Who::Amx ? "amx" : ""))
            kernels = with_fast_bf16(*found);
    if (!kernels.bf16.name) return std::nullopt;
    return kernels;
}

bool has_bf16(const CpuKernels& kernels, DType dtype) {
    return kernels.bf16.matmul[static_cast<size_t>(dtype)] != nullptr;
}

class Bf16Products : public testing::TestWithParam<Who> {
  protected:
    void SetUp() override {
        const auto found = kernels_of(GetParam());
        if (!found) GTEST_SKIP() << "this processor has no bf16 products beside the kernels of " << name_of(GetParam());
        kernels_ = *found;
        backend_ = std::make_unique<TableBackend>(kernels_);
    }

    CpuKernels kernels_{};
    std::unique_ptr<TableBackend> backend_;
    Random random_{11};
};
INSTANTIATE_TEST_SUITE_P(Who, Bf16Products, testing::ValuesIn(kEveryone),
                         [](const auto& of) { return name_of(of.param); });

std::vector<float> floats_of(const OpCase::Result& result) {
    std::vector<float> y(result.outputs[0].size() / sizeof(float));
    std::memcpy(y.data(), result.outputs[0].data(), result.outputs[0].size());
    return y;
}

struct MatmulSize {
    int64_t n_out, n_in, n_columns;
};

/// Sums in float64 of the values rounded to bf16, and of the values themselves, with the sums of their absolute terms.
struct Bf16Dot {
    double rounded = 0, rounded_magnitude = 0, exact = 0, magnitude = 0;
};
Bf16Dot bf16_dot(Array& w, int64_t row, const float* x) {
    Bf16Dot dot;
    for (int64_t k = 0; k < w.shape[-1]; ++k) {
        const auto [main, minimum] = weight_value(w, row, k);
        const double term = static_cast<double>(bf16_to_f32(f32_to_bf16(static_cast<float>(main + minimum)))) *
                            static_cast<double>(bf16_to_f32(f32_to_bf16(x[k])));
        dot.rounded += term;
        dot.rounded_magnitude += std::abs(term);
        dot.exact += (main + minimum) * static_cast<double>(x[k]);
        dot.magnitude += (std::abs(main) + std::abs(minimum)) * std::abs(static_cast<double>(x[k]));
    }
    return dot;
}

/// The result is that of values rounded to bf16 up to float32 rounding of each of n_in additions (and a few that join
/// sums), and so within two roundings to bf16 of the exact one.
void expect_products(Array& w, const std::vector<float>& x, const std::vector<float>& y, int64_t n_columns,
                     const std::string& what) {
    const int64_t n_out = w.shape[0], n_in = w.shape[1];
    const double sums = static_cast<double>(n_in + 8) * kEps, roundings = 2 * 0x1p-9 + 0x1p-18;
    for (int64_t c = 0; c < n_columns; ++c)
        for (int64_t r = 0; r < n_out; ++r) {
            const Bf16Dot dot = bf16_dot(w, r, x.data() + c * n_in);
            const double got = y[static_cast<size_t>(c * n_out + r)];
            ASSERT_NEAR(got, dot.rounded, sums * dot.rounded_magnitude) << what << " row " << r << " column " << c;
            ASSERT_NEAR(got, dot.exact, (roundings + 2 * sums) * dot.magnitude) << what << " row " << r;
        }
}

// Rows, columns and K that no tile divides; one group and a second one; one row tile, two and three; more blocks than
// fit one pass over the eight parts.
constexpr MatmulSize kSizes32[] = {{16, 32, 20},  {1, 100, 33},  {17, 172, 24},
                                   {33, 548, 21}, {47, 288, 49}, {50, 1056, 32}};
constexpr MatmulSize kSizes256[] = {{16, 256, 20}, {33, 2304, 33}};

TEST_P(Bf16Products, MultiplyRoundedValues) {
    for (const DType dtype : kWeightTypes) {
        if (!has_bf16(kernels_, dtype)) continue;
        const auto sizes = info(dtype).block_len == 256 ? std::span<const MatmulSize>(kSizes256) : kSizes32;
        for (const MatmulSize& s : sizes) {
            OpCase c;
            Array w = random_weight(random_, dtype, {s.n_out, s.n_in});
            const auto x = random_floats(random_, s.n_columns * s.n_in);
            matmul(c.graph, c.weight(w), c.input({{s.n_columns, s.n_in}, x}));
            const auto result = c.run_on(*backend_);
            EXPECT_EQ(result.fault, Fault::None);
            expect_products(w, x, floats_of(result), s.n_columns,
                            std::string(name(dtype)) + " K " + std::to_string(s.n_in));
        }
    }
}

/// Powers of two from the smallest to the largest, with random codes. Up to 252 exponents are lowered; a tile with a
/// larger one, which the first row of each tile has in the second round, is decoded in another way.
TEST_P(Bf16Products, MultiplyMxfp4OfEveryPower) {
    if (!has_bf16(kernels_, DType::MXFP4)) GTEST_SKIP() << "mxfp4 has no products in bf16 here";
    for (const int last : {252, 254}) {
        Array w = random_weight(random_, DType::MXFP4, {256, 32});
        for (int row = 0; row < 256; ++row)
            w.as<TileMXFP4>()[row / 16].e[row % 16] = static_cast<uint8_t>(row % 16 == 0 ? last : std::min(row, last));
        const auto x = random_floats(random_, 20 * 32, 0.25f);
        OpCase c;
        matmul(c.graph, c.weight(w), c.input({{20, 32}, x}));
        const auto y = floats_of(c.run_on(*backend_));
        for (int64_t column = 0; column < 20; ++column)
            for (int64_t row = 0; row < 256; ++row) {
                const Bf16Dot dot = bf16_dot(w, row, x.data() + column * 32);
                const double zeros = 32 * 0x1p-126;  // weights that count as zeros
                if (!(dot.rounded_magnitude < 0x1p127)) continue;
                ASSERT_NEAR(y[static_cast<size_t>(256 * column + row)], dot.rounded,
                            40 * kEps * dot.rounded_magnitude + zeros)
                    << row;
            }
    }
}

TEST_P(Bf16Products, LeaveFewColumnsExact) {
    for (const DType dtype : kWeightTypes) {
        if (!has_bf16(kernels_, dtype)) continue;
        const bool has_int8 = kernels_.matmul_groups[static_cast<size_t>(dtype)] != nullptr;
        for (const int64_t n : {int64_t{1}, int64_t{4}, has_int8 ? cpu::kBf16Columns - 1 : int64_t{3}}) {
            OpCase c;
            matmul(c.graph, c.weight(random_weight(random_, dtype, {18, 256})),
                   c.input(random_array(random_, {n, 256})));
            expect_same(c.run_reference_op(), c.run_on(*backend_), std::string(name(dtype)));
        }
    }
}

/// Experts multiply as plain products of as many columns do; the mixture's other parts are exact.
TEST_P(Bf16Products, ServeExpertsWithManyPairs) {
    constexpr int64_t kIn = 100, kOut = 37, kTokens = 60;
    for (const DType dtype : kWeightTypes) {
        if (!has_bf16(kernels_, dtype) || info(dtype).block_len == 256) continue;
        Array w = random_weight(random_, dtype, {3, kOut, kIn});
        const auto x = random_floats(random_, kTokens * kIn);
        std::vector<int32_t> ids;  // experts with 40, 16 and 4 tokens
        for (int64_t t = 0; t < kTokens; ++t) ids.push_back(t % 3 != 2 ? 0 : t < 48 ? 1 : 2);
        OpCase c;
        expert_matmul(c.graph, c.weight(w), Tensor{}, c.input({{kTokens, kIn}, x}), c.input({{kTokens, 1}, ids}),
                      c.input({{3}, std::vector<int32_t>{0, 1, 2}}));
        const auto got = floats_of(c.run_on(*backend_));
        for (int32_t e = 0; e < 3; ++e) {
            std::vector<float> rows;
            std::vector<int64_t> tokens;
            for (int64_t t = 0; t < kTokens; ++t) {
                if (ids[static_cast<size_t>(t)] != e) continue;
                tokens.push_back(t);
                rows.insert(rows.end(), x.begin() + t * kIn, x.begin() + (t + 1) * kIn);
            }
            const auto size = static_cast<size_t>(slice_bytes(dtype, {kOut, kIn}));
            Array slice(dtype, {kOut, kIn});
            std::copy_n(w.bytes.begin() + static_cast<std::ptrdiff_t>(size) * e, size, slice.bytes.begin());
            OpCase plain;
            matmul(plain.graph, plain.weight(slice), plain.input({{static_cast<int64_t>(tokens.size()), kIn}, rows}));
            const auto expected = floats_of(plain.run_on(*backend_));
            for (size_t i = 0; i < tokens.size(); ++i)
                for (int64_t r = 0; r < kOut; ++r)
                    ASSERT_EQ(got[static_cast<size_t>(tokens[i] * kOut + r)],
                              expected[i * static_cast<size_t>(kOut) + static_cast<size_t>(r)])
                        << name(dtype) << " expert " << e << " token " << tokens[i] << " row " << r;
        }
    }
}

/// The whole mixture against its parts: gate and up, SwiGLU, down. All tokens choose expert 1.
TEST_P(Bf16Products, ServeTheWholeMixture) {
    constexpr int64_t kEmbd = 68, kFf = 84, kTokens = 25;
    const DType mixes[][3] = {{DType::MXFP4, DType::MXFP4, DType::Q8_0},
                              {DType::BF16, DType::Q4_0, DType::MXFP8},
                              {DType::Q6_K, DType::F16, DType::F32}};
    for (const auto& mix : mixes) {
        const bool wide = mix[0] == DType::Q6_K;
        const int64_t n_embd = wide ? 256 : kEmbd;
        const auto stack = [&](DType dtype, int64_t n_out, int64_t n_in) {
            return random_weight(random_, dtype, {2, n_out, n_in});
        };
        Array gate = stack(mix[0], kFf, n_embd), up = stack(mix[1], kFf, n_embd), down = stack(mix[2], n_embd, kFf);
        const auto slice = [](const Array& w) {
            Array one(w.dtype, {w.shape[1], w.shape[2]});
            std::copy_n(w.bytes.begin() + w.slot_stride, one.bytes.size(), one.bytes.begin());
            return one;
        };
        const auto product = [&](const Array& w, const std::vector<float>& x) {
            OpCase c;
            matmul(c.graph, c.weight(slice(w)), c.input({{kTokens, w.shape[2]}, x}));
            return floats_of(c.run_on(*backend_));
        };
        const auto x = random_floats(random_, kTokens * n_embd);
        OpCase c;
        const Tensor input = c.input({{kTokens, n_embd}, x});
        const ExpertWeights w{c.weight(gate), c.weight(up), c.weight(down), {}, {}, {}};
        const Tensor ids = c.input({{kTokens, 1}, std::vector<int32_t>(kTokens, 1)});
        expert_rows(c.graph, w, input, ids, c.input({{2}, std::vector<int32_t>{0, 1}}), {});

        std::vector<float> h = product(gate, x);
        const std::vector<float> u = product(up, x);
        scalar_kernels.swiglu(h.data(), u.data(), h.data(), static_cast<int64_t>(h.size()), {1.0f, 0.0f, 0.0f});
        EXPECT_EQ(floats_of(c.run_on(*backend_)), product(down, h)) << name(mix[0]);
    }
}

/// A shard of a wider matrix: its blocks lie in fewer parts.
TEST_P(Bf16Products, MultiplyShards) {
    constexpr int64_t kIn = 11 * 32, kOut = 20, kColumns = 18;
    const int64_t n_blocks = kIn / 32;
    for (const DType dtype : {DType::MXFP4, DType::Q4_0, DType::MXFP8}) {
        if (!has_bf16(kernels_, dtype)) continue;
        for (const int n_partials : {1, 2, 4}) {
            Array w = random_weight(random_, dtype, {kOut, kIn});
            const auto x = random_floats(random_, kColumns * kIn);
            const int64_t group_blocks = round_up(n_blocks, int64_t{n_partials});
            std::vector<Bf16Block> groups(static_cast<size_t>(2 * group_blocks * kGroupColumns));
            for (int64_t c = 0; c < kColumns; ++c) {
                Bf16Block* group = groups.data() + c / kGroupColumns * group_blocks * kGroupColumns;
                kernels_.bf16.round_row(x.data() + c * kIn, kIn, 0, n_blocks, group + c % kGroupColumns, n_partials);
            }
            std::vector<Bf16Panel> panels(static_cast<size_t>(2 * group_blocks));
            std::vector<float> y(kColumns * kOut);
            const auto* columns = reinterpret_cast<const ActivationBlock*>(groups.data());
            kernels_.bf16.matmul[static_cast<size_t>(dtype)]({w.bytes.data(), kOut, kIn, nullptr, n_partials},
                                                             {columns, kColumns, y.data(), kOut, nullptr}, 0, 2,
                                                             panels.data());
            expect_products(w, x, y, kColumns, std::string(name(dtype)) + " in " + std::to_string(n_partials));
        }
    }
}

TEST_P(Bf16Products, AddABias) {
    Array w = random_weight(random_, DType::BF16, {16, 64});
    const auto x = random_floats(random_, 64);
    std::vector<Bf16Block> group(2 * kGroupColumns * 4);
    kernels_.bf16.round_row(x.data(), 64, 0, 2, group.data(), 8);
    std::vector<Bf16Panel> panels(8);
    float y[16] = {}, with_bias[16] = {}, bias[16];
    for (int i = 0; i < 16; ++i) bias[i] = 0.5f * static_cast<float>(i);
    const auto* columns = reinterpret_cast<const ActivationBlock*>(group.data());
    const auto multiply = kernels_.bf16.matmul[static_cast<size_t>(DType::BF16)];
    multiply({w.bytes.data(), 16, 64, nullptr, 8}, {columns, 1, y, 16, nullptr}, 0, 1, panels.data());
    multiply({w.bytes.data(), 16, 64, bias, 8}, {columns, 1, with_bias, 16, nullptr}, 0, 1, panels.data());
    for (int i = 0; i < 16; ++i) EXPECT_EQ(with_bias[i], y[i] + bias[i]);
}

TEST_P(Bf16Products, ReportWhatInt8CouldNotExpressAndPassOnTheRest) {
    for (const DType dtype : {DType::Q8_0, DType::BF16}) {
        if (!has_bf16(kernels_, dtype)) continue;
        for (const float bad : {NAN, INFINITY}) {
            OpCase c;
            Array x = random_array(random_, {24, 64});
            x.as<float>()[21 * 64 + 40] = bad;
            matmul(c.graph, c.weight(random_weight(random_, dtype, {16, 64})), c.input(std::move(x)));
            const auto result = c.run_on(*backend_);
            const auto y = floats_of(result);
            EXPECT_FALSE(std::isfinite(y[21 * 16 + 3]));
            EXPECT_TRUE(std::isfinite(y[20 * 16 + 3]) && std::isfinite(y[22 * 16 + 3]));
            if (dtype == DType::BF16) continue;
            EXPECT_EQ(result.fault, Fault::NonFinite);
            EXPECT_EQ(result.row, 21);
        }
    }
}

TEST_P(Bf16Products, KeepNansOfWeightsInTheirRow) {
    for (const DType dtype : {DType::MXFP8, DType::MXFP4, DType::F16}) {
        if (!has_bf16(kernels_, dtype)) continue;
        OpCase c;
        Array w = random_weight(random_, dtype, {16, 64});
        if (dtype == DType::MXFP8) w.as<TileMXFP8>()[1].q[5][3][2] = 0xff;
        if (dtype == DType::MXFP4) w.as<TileMXFP4>()[1].e[3] = 255;
        if (dtype == DType::F16) w.as<uint16_t>()[3 * 64 + 7] = 0x7fff;
        matmul(c.graph, c.weight(std::move(w)), c.input(random_array(random_, {24, 64})));
        const auto y = floats_of(c.run_on(*backend_));
        for (int column = 0; column < 24; ++column)
            for (int r = 0; r < 16; ++r)
                EXPECT_EQ(std::isnan(y[static_cast<size_t>(16 * column + r)]), r == 3) << name(dtype);
    }
}

TEST_P(Bf16Products, PassTheCheckAtStartAndFailItWhenWrong) {
    EXPECT_NO_THROW(check_kernels(kernels_));
    CpuKernels wrong = kernels_;
    wrong.bf16.matmul[static_cast<size_t>(DType::BF16)] = kernels_.bf16.matmul[static_cast<size_t>(DType::F16)];
    try {
        check_kernels(wrong);
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("kernel for bf16"), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find("leave --fast-bf16 out"), std::string::npos) << error.what();
    }
}

TEST_P(Bf16Products, AreNamedAsTheKernelsOfTheirTypes) {
    for (const DType dtype : kWeightTypes)
        if (has_bf16(kernels_, dtype)) {
            EXPECT_EQ(describe_products(kernels_, dtype).family, kernels_.bf16.name);
        }
    EXPECT_FALSE(has_bf16(kernels_, DType::F32));
}

TEST(FastBf16, IsOffUnlessAskedForAndSaysWhatCameOfIt) {
    for (const CpuKernels* kernels : supported_kernels()) {
        EXPECT_EQ(kernels->bf16.name, nullptr);
        const auto off = make_cpu_backend({.n_threads = 1, .isa = kernels->name});
        EXPECT_EQ(off->description().find("bf16"), std::string::npos) << off->description();
        const auto on = make_cpu_backend({.n_threads = 1, .isa = kernels->name, .fast_bf16 = true});
        const char* name = with_fast_bf16(*kernels).bf16.name;
        const std::string expected = name ? std::string(" with fast bf16 products (") + name + ")"
                                          : std::string("--fast-bf16 without effect (") + kernels->name;
        EXPECT_NE(on->description().find(expected), std::string::npos) << on->description();
    }
}

}  // namespace
}  // namespace ggmlx::test
