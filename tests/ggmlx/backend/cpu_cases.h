#pragma once
// A case builds one op; it must give the bytes of the reference on every instruction set this machine has and on 1, 2
// and 3 threads.

#include <functional>
#include <memory>

#include "ggmlx/backend/cpu/cpu_backend.h"
#include "ggmlx/backend/cpu/dispatch.h"
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

inline std::string case_label(const testing::TestParamInfo<CaseOf>& info) {
    std::string label = info.param.label;
    for (char& ch : label)
        if (!std::isalnum(static_cast<unsigned char>(ch))) ch = '_';
    return label;
}

inline Array ints(const Shape& shape, const std::vector<int32_t>& values) { return {shape, values}; }

}  // namespace ggmlx::test
