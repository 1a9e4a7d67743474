#pragma once
// A case builds one op; it must give the bytes of the reference on every instruction set this machine has and on 1, 2
// and 3 threads.

#include <functional>
#include <memory>

#include "ggmlx/backend/cpu/cpu_backend.h"
#include "ggmlx/backend/cpu/dispatch.h"
#include "ggmlx/backend/cuda/cuda_backend.h"
#include "ggmlx/backend/op_case.h"

namespace ggmlx::test {

/// Backends under test: every ISA, 1, 2 and 3 threads.
inline std::span<const std::unique_ptr<Backend>> backends() {
    static const auto all = [] {
        std::vector<std::unique_ptr<Backend>> list;
        for (const CpuKernels* kernels : supported_kernels())
            for (int n_threads = 1; n_threads <= 3; ++n_threads)
                list.push_back(make_cpu_backend({.n_threads = n_threads, .isa = kernels->name}));
        return list;
    }();
    return all;
}

struct CaseOf {
    std::string label;
    std::function<void(OpCase&, Random&)> build;
};
inline void PrintTo(const CaseOf& c, std::ostream* out) { *out << c.label; }

inline void expect_reference_bits(const CaseOf& of) {
    Random random(7);
    OpCase c;
    of.build(c, random);
    const OpCase::Result expected = c.run_reference_op();
    for (const auto& backend : backends())
        expect_same(expected, c.run_on(*backend), of.label + " on " + backend->description());
}

#ifdef GGMLX_TEST_CUDA
inline Backend& cuda_backend() {
    static const auto backend = make_cuda_backend(0);
    return *backend;
}

/// Terms of the sums that CUDA adds in an order of its own; 0: the op gives the reference's bits.
inline int64_t reordered_terms(const Node& node) {
    const auto is_plain = [](Tensor t) { return !is_block(t.dtype()); };
    switch (node.op) {
        case Op::Matmul:
        case Op::HeadMatmul:
            return is_plain(node.inputs[0]) || (node.inputs[0].dtype() == DType::MXFP8 && node.inputs[1].dim(0) > 8)
                       ? node.inputs[0].shape()[-1]
                       : 0;
        case Op::ExpertMatmul:
            return is_plain(node.inputs[3]) ? node.inputs[3].shape()[-1] : 0;
        case Op::ExpertRows:
            return is_plain(node.inputs[3]) || is_plain(node.inputs[4]) || is_plain(node.inputs[5])
                       ? node.inputs[3].shape()[-1] + node.inputs[5].shape()[-1]
                       : 0;
        case Op::RmsNorm:
        case Op::Softmax:
            return node.inputs[0].shape()[-1];
        case Op::Attention:
            return node.inputs[0].shape()[-1] + node.inputs[3].shape()[-1] * node.inputs[1].shape()[2];
        case Op::RopeTable:
            return 1;
        default:
            return 0;
    }
}

inline void expect_on_cuda(const CaseOf& of) {
    Random random(7);
    OpCase c;
    of.build(c, random);
    const Node& node = c.graph.nodes().back();
    if (node.op == Op::Experts) return;  // plans always run its parts
    const OpCase::Result expected = c.run_reference_op(), got = c.run_on(cuda_backend());
    if (const int64_t n = reordered_terms(node); n > 0)
        expect_near(expected, got, n, of.label);
    else
        expect_same(expected, got, of.label);
}
#define GGMLX_ON_CUDA(suite)                                             \
    TEST_P(suite, HoldsOnCuda) {                                         \
        if (const CudaCards cards = find_cuda_cards(); cards.count == 0) \
            GTEST_SKIP() << "no CUDA card: " << cards.problem;           \
        expect_on_cuda(GetParam());                                      \
    }
#else
#define GGMLX_ON_CUDA(suite)
#endif

inline std::string case_label(const testing::TestParamInfo<CaseOf>& info) {
    std::string label = info.param.label;
    for (char& ch : label)
        if (!std::isalnum(static_cast<unsigned char>(ch))) ch = '_';
    return label;
}

inline Array ints(const Shape& shape, const std::vector<int32_t>& values) { return {shape, values}; }

}  // namespace ggmlx::test
