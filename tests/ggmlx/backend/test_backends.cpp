// The devices themselves: what they are called, what they refuse, and steps of several segments.

#include <cstdlib>

#include "ggmlx/backend/cpu/cpu_backend.h"
#include "ggmlx/backend/cpu/dispatch.h"
#include "ggmlx/backend/cpu_cases.h"
#include "ggmlx/backend/reference_backend.h"

namespace ggmlx::test {
namespace {

std::string error_of(const CpuOptions& options) {
    try {
        make_cpu_backend(options);
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

/// Sets an environment variable for its lifetime.
class ScopedEnvironment {
  public:
    ScopedEnvironment(const char* name, const char* value) : name_(name) {
        if (const char* old = std::getenv(name)) old_ = old, had_ = true;
        setenv(name, value, 1);
    }
    ~ScopedEnvironment() { had_ ? setenv(name_, old_.c_str(), 1) : unsetenv(name_); }
    ScopedEnvironment(const ScopedEnvironment&) = delete;
    ScopedEnvironment& operator=(const ScopedEnvironment&) = delete;

  private:
    const char* name_;
    std::string old_;
    bool had_ = false;
};

TEST(CpuIsa, EverySupportedOneCanBeForced) {
    for (const CpuKernels* kernels : supported_kernels()) {
        EXPECT_STREQ(choose_kernels(kernels->name).name, kernels->name);
        ScopedEnvironment forced("GGMLX_ISA", kernels->name);
        EXPECT_STREQ(choose_kernels("").name, kernels->name);
    }
    EXPECT_STREQ(supported_kernels().back()->name, "scalar");
}

TEST(CpuIsa, TheOptionGoesBeforeTheEnvironment) {
    ScopedEnvironment forced("GGMLX_ISA", "nonsense");
    EXPECT_STREQ(choose_kernels("scalar").name, "scalar");
}

TEST(CpuIsa, AnUnknownNameIsAnErrorThatListsThoseThereAre) {
    const std::string option = error_of({.n_threads = 1, .isa = "avx1024"});
    EXPECT_NE(option.find("--isa"), std::string::npos) << option;
    EXPECT_NE(option.find("avx1024"), std::string::npos) << option;
    EXPECT_NE(option.find("scalar"), std::string::npos) << option;
    ScopedEnvironment forced("GGMLX_ISA", "nonsense");
    const std::string environment = error_of({.n_threads = 1, .isa = ""});
    EXPECT_NE(environment.find("GGMLX_ISA"), std::string::npos) << environment;
}

TEST(CpuBackend, DescribesItself) {
    const auto cpu = make_cpu_backend({.n_threads = 2, .isa = "scalar"});
    EXPECT_EQ(cpu->name(), "cpu");
    EXPECT_NE(cpu->description().find("scalar, 2 threads"), std::string::npos) << cpu->description();
    EXPECT_GT(cpu->free_bytes(), 0u);
    EXPECT_TRUE(cpu->reads_host_memory());
}

TEST(CpuBackend, SaysWhatMultipliesAType) {
    for (const CpuKernels* kernels : supported_kernels()) {
        const auto cpu = make_cpu_backend({.n_threads = 1, .isa = kernels->name});
        EXPECT_EQ(cpu->product_kernels(DType::MXFP4).family, std::string(kernels->name) + " int8");
        EXPECT_EQ(cpu->product_kernels(DType::MXFP4).remark, "");
        const ProductKernels plain = cpu->product_kernels(DType::BF16);
        EXPECT_NE(plain.family.find(" float"), std::string::npos) << plain.family;
        EXPECT_EQ(plain.remark, "bf16 has no int8 products");
    }
    EXPECT_EQ(make_cpu_backend({.n_threads = 1, .isa = "scalar"})->product_kernels(DType::F32).family, "scalar float");
}

TEST(CpuBackend, UploadsAnySize) {
    const auto cpu = make_cpu_backend({.n_threads = 2});
    for (size_t size : {size_t{1}, size_t{5000}, (size_t{4} << 20) - 1, (size_t{9} << 20) + 33}) {
        std::vector<std::byte> from(size), back(size);
        for (size_t i = 0; i < size; ++i) from[i] = static_cast<std::byte>(i * 7 + i / 256);
        const auto memory = cpu->alloc(size + 1);
        cpu->upload(memory.get(), from.data(), size);
        cpu->download(back.data(), memory.get(), size);
        EXPECT_EQ(back, from);
        EXPECT_EQ(memory.get()[size], std::byte{0}) << "wrote behind the end";
    }
}

TEST(CpuBackend, RefusesANegativeNumberOfThreads) {
    EXPECT_NE(error_of({.n_threads = -1, .isa = ""}).find("-1"), std::string::npos);
}

TEST(CpuBackend, RefusesMoreMemoryThanThereIsWithItsName) {
    const auto cpu = make_cpu_backend({.n_threads = 1, .isa = ""});
    try {
        cpu->alloc(size_t{1} << 60);
        FAIL() << "allocated an exbibyte";
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::OutOfMemory);
        EXPECT_EQ(std::string(e.what()).rfind("cpu: ", 0), 0u) << e.what();
    }
}

TEST(CpuBackend, MemoryIsZeroedAndAligned) {
    const auto cpu = make_cpu_backend({.n_threads = 1, .isa = ""});
    for (size_t size : {size_t{0}, size_t{1}, size_t{100000}}) {
        const auto memory = cpu->alloc(size);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.get()) % 64, 0u);
        for (size_t i = 0; i < size; ++i) ASSERT_EQ(memory.get()[i], std::byte{0});
    }
}

TEST(CpuBackend, KernelsOfAllTypesAreThereForEveryIsa) {
    for (const CpuKernels* kernels : supported_kernels())
        for (int t = 0; t < kDTypeCount; ++t) {
            const auto dtype = static_cast<DType>(t);
            const bool is_weight = dtype != DType::I32 && dtype != DType::F8_E4M3;
            EXPECT_EQ(kernels->matmul[t] != nullptr, is_weight) << kernels->name << " " << name(dtype);
            for (const bool there : {kernels->store_row[t] != nullptr, kernels->unpack_keys[t] != nullptr,
                                     kernels->unpack_values[t] != nullptr})
                EXPECT_EQ(there, is_cache_type(dtype)) << kernels->name << " " << name(dtype);
        }
}

/// Hands out `n` segments of the same calls.
class Repeat : public SegmentSource {
  public:
    Repeat(std::vector<OpCall*> calls, int n) : calls_(std::move(calls)), left_(n) {}
    std::span<OpCall* const> next() noexcept override {
        if (left_ == 0) return {};
        --left_;
        return calls_;
    }

  private:
    std::vector<OpCall*> calls_;
    int left_;
};

/// x = x + y, x = x · 0.5, a hundred times: every op must see the one before.
TEST(CpuBackend, RunsAllCallsOfAllSegmentsInOrder) {
    const OpParams none, half = ScaleParams{0.5f};
    for (const auto& backend : backends()) {
        std::vector<float> x(10000, 0.0f), y(10000, 1.0f);
        const Shape shape{10, 1000};
        const TensorView vx{reinterpret_cast<std::byte*>(x.data()), DType::F32, shape};
        const TensorView vy{reinterpret_cast<std::byte*>(y.data()), DType::F32, shape};
        CallStatus status;
        OpCall add{Op::Add, &none, {vx, vy}, {vx}, nullptr, &status};
        OpCall scale{Op::Scale, &half, {vx}, {vx}, nullptr, &status};
        Repeat source({&add, &scale}, 100);
        backend->run(source);
        float expected = 0.0f;
        for (int i = 0; i < 100; ++i) expected = (expected + 1.0f) * 0.5f;
        EXPECT_EQ(x, std::vector<float>(10000, expected)) << backend->description();
    }
}

TEST(ReferenceBackend, RunsTheReferenceInMemoryOfItsOwn) {
    const auto ref = make_reference_backend("ref1");
    EXPECT_EQ(ref->name(), "ref1");
    EXPECT_FALSE(ref->reads_host_memory());
    Random random(3);
    OpCase c;
    const Tensor x = c.input(random_array(random, {3, 40}));
    softmax(c.graph, x);
    expect_same(c.run_reference_op(), c.run_on(*ref), "ref1");

    const auto memory = ref->alloc(5);
    ref->upload(memory.get(), "abcd", 5);
    char back[5];
    ref->download(back, memory.get(), 5);
    EXPECT_STREQ(back, "abcd");
}

}  // namespace
}  // namespace ggmlx::test
