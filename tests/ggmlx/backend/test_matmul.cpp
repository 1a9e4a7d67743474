// matmul and get_rows on every weight type.

#include "ggmlx/backend/cpu_cases.h"
#include "ggmlx/graph/ops.h"

namespace ggmlx::test {
namespace {

class CpuMatmul : public testing::TestWithParam<CaseOf> {};

TEST_P(CpuMatmul, GivesTheBitsOfTheReference) { expect_reference_bits(GetParam()); }
GGMLX_ON_CUDA(CpuMatmul)

std::vector<CaseOf> matmul_cases() {
    struct Size {
        int64_t n_out, n_in, n_tokens;
    };
    // One row, one block, primes; K that ends inside a block; more than eight blocks, so that partial sums are reused;
    // every number of columns a kernel may get, and several rounds of them.
    const std::vector<Size> sizes32 = {{1, 32, 1},    {17, 64, 1},   {16, 100, 2},  {33, 172, 3},   {17, 320, 4},
                                       {31, 288, 5},  {47, 100, 6},  {16, 1056, 7}, {19, 96, 8},    {18, 548, 9},
                                       {113, 64, 33}, {33, 288, 12}, {20, 160, 13}, {35, 1056, 16}, {150, 96, 17}};
    const std::vector<Size> sizes256 = {{1, 256, 1},  {17, 512, 2},  {33, 256, 3},  {16, 2304, 4},
                                        {19, 256, 9}, {65, 512, 33}, {33, 2304, 16}};
    const std::vector<Size> sizes_plain = {{1, 1, 1}, {3, 7, 2}, {5, 8, 3}, {17, 101, 4}, {6, 33, 9}, {70, 64, 33}};
    std::vector<CaseOf> cases;
    for (DType dtype : kWeightTypes) {
        auto sizes = info(dtype).block_len == 256 ? sizes256 : sizes32;
        if (!is_block(dtype)) sizes.insert(sizes.end(), sizes_plain.begin(), sizes_plain.end());
        for (const Size& s : sizes)
            cases.push_back({"matmul " + std::string(name(dtype)) + " " + std::to_string(s.n_out) + "x" +
                                 std::to_string(s.n_in) + " columns " + std::to_string(s.n_tokens),
                             [=](OpCase& c, Random& random) {
                                 const Tensor w = c.weight(random_weight(random, dtype, {s.n_out, s.n_in}));
                                 matmul(c.graph, w, c.input(random_array(random, {s.n_tokens, s.n_in})));
                             }});
        for (int64_t n_tokens : {1, 5, 9})
            cases.push_back({"head_matmul " + std::string(name(dtype)) + " columns " + std::to_string(n_tokens),
                             [=](OpCase& c, Random& random) {
                                 const int64_t n_in = info(dtype).block_len == 256 ? 512 : 100;
                                 const Tensor w = c.weight(random_weight(random, dtype, {3, 37, n_in}));
                                 head_matmul(c.graph, w, c.input(random_array(random, {n_tokens, 3, n_in})));
                             }});
        const int64_t n_cols = info(dtype).block_len == 256 ? 512 : 100;
        cases.push_back({"get_rows " + std::string(name(dtype)), [=](OpCase& c, Random& random) {
                             const Tensor table = c.weight(random_weight(random, dtype, {37, n_cols}));
                             get_rows(c.graph, table, c.input(ints({6}, {0, 36, -1, 15, 16, 36})));
                         }});
    }
    return cases;
}
INSTANTIATE_TEST_SUITE_P(Matmul, CpuMatmul, testing::ValuesIn(matmul_cases()), case_label);

/// Activations and weights at the ends of their ranges: what could saturate or wrap in 16 bits does not.
std::vector<CaseOf> extreme_cases() {
    std::vector<CaseOf> cases;
    for (DType dtype : kWeightTypes) {
        if (!is_block(dtype) || dtype == DType::MXFP8) continue;
        for (int byte : {0x00, 0x7f, 0x80, 0xff})
            for (bool many : {false, true})
                cases.push_back(
                    {"extreme " + std::string(name(dtype)) + " byte " + std::to_string(byte) + (many ? " many" : ""),
                     [=](OpCase& c, Random& random) {
                         Array w(dtype, {16, 512});
                         for (std::byte& b : w.bytes) b = static_cast<std::byte>(byte);
                         with_tile(dtype, [&]<class Tile>(const Tile*) {
                             for (size_t i = 0; i < w.bytes.size() / sizeof(Tile); ++i)
                                 set_scales(w.as<Tile>()[i], random);
                         });
                         // All of one sign, then alternating signs in pairs: the largest sums of each kind.
                         std::vector<float> x(3 * 512, 1.0f);
                         for (size_t i = 0; i < 512; ++i) x[512 + i] = -1.0f;
                         for (size_t i = 0; i < 512; ++i) x[1024 + i] = i % 2 ? -1.0f : 1.0f;
                         if (many) x.insert(x.end(), x.begin(), x.begin() + 3 * 512);  // six columns: a group
                         const auto n = static_cast<int64_t>(x.size() / 512);
                         matmul(c.graph, c.weight(std::move(w)), c.input({{n, 512}, x}));
                     }});
    }
    return cases;
}
INSTANTIATE_TEST_SUITE_P(Extreme, CpuMatmul, testing::ValuesIn(extreme_cases()), case_label);

std::vector<CaseOf> odd_activation_cases() {
    return {
        {"tiny and huge activations",
         [](OpCase& c, Random& random) {
             std::vector<float> x = random_floats(random, 4 * 96);
             for (size_t i = 0; i < 96; ++i) {
                 x[i] *= 1e-32f;       // below the smallest scale: zeros
                 x[96 + i] *= 1e-39f;  // subnormal
                 x[192 + i] *= 1e37f;
                 x[288 + i] = i < 32 ? 0.0f : x[288 + i];
             }
             matmul(c.graph, c.weight(random_weight(random, DType::MXFP4, {16, 96})), c.input({{4, 96}, x}));
         }},
        {"ties round to even",
         [](OpCase& c, Random& random) {
             std::vector<float> x(32, 0.0f);
             for (size_t i = 0; i < 32; ++i) x[i] = static_cast<float>(i) - 15.5f;
             x[31] = 127.0f;  // scale 1
             matmul(c.graph, c.weight(random_weight(random, DType::Q8_0, {16, 32})), c.input({{1, 32}, x}));
         }},
        {"subnormal mxfp4 scales",
         [](OpCase& c, Random& random) {
             Array w = random_weight(random, DType::MXFP4, {16, 64});
             for (size_t i = 0; i < 2; ++i)
                 for (int r = 0; r < 16; ++r) w.as<TileMXFP4>()[i].e[r] = static_cast<uint8_t>(r / 2);
             std::vector<float> x = random_floats(random, 64, 1e30f);
             matmul(c.graph, c.weight(std::move(w)), c.input({{1, 64}, x}));
         }},
        {"every mxfp8 code",
         [](OpCase& c, Random&) {
             Array w(DType::MXFP8, {16, 256});
             for (size_t b = 0; b < 8; ++b) {
                 TileMXFP8& t = w.as<TileMXFP8>()[b];
                 for (int r = 0; r < 16; ++r) {
                     t.e[r] = static_cast<uint8_t>(r == 0 ? 0 : 110 + 2 * r);
                     for (size_t k = 0; k < 32; ++k) {
                         const auto code = static_cast<uint8_t>(32 * b + k);
                         t.q[k / 4][r][k % 4] = (code & 0x7f) == 0x7f ? uint8_t{1} : code;
                     }
                 }
             }
             std::vector<float> x(256);
             for (size_t i = 0; i < 256; ++i) x[i] = 1.0f + 0.01f * static_cast<float>(i);
             matmul(c.graph, c.weight(std::move(w)), c.input({{1, 256}, x}));
         }},
    };
}
INSTANTIATE_TEST_SUITE_P(Odd, CpuMatmul, testing::ValuesIn(odd_activation_cases()), case_label);

}  // namespace
}  // namespace ggmlx::test
