#include "ggmlx/backend/cpu/dispatch.h"

#include <cstdlib>
#include <fstream>
#include <vector>

#include "ggmlx/core/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace ggmlx {
namespace {

#if defined(__x86_64__)

struct Features {
    bool avx2 = false, avx512 = false;
};

constexpr bool has(uint32_t word, std::initializer_list<int> bits) {
    for (int bit : bits)
        if (!(word >> bit & 1)) return false;
    return true;
}

/// Which registers the operating system saves (XCR0).
uint32_t saved_state() {
    uint32_t low, high;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

Features detect() {
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return {};
    constexpr int kFma = 12, kOsXsave = 27, kAvx = 28, kF16c = 29;
    if (!has(c, {kFma, kOsXsave, kAvx, kF16c})) return {};
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return {};
    constexpr int kAvx2 = 5, kAvx512F = 16, kAvx512DQ = 17, kAvx512BW = 30, kAvx512VL = 31;  // in EBX
    constexpr int kAvx512Vnni = 11;                                                          // in ECX
    const uint32_t saved = saved_state();
    Features features;
    features.avx2 = has(saved, {1, 2}) && has(b, {kAvx2});
    features.avx512 = features.avx2 && has(saved, {5, 6, 7}) && has(b, {kAvx512F, kAvx512DQ, kAvx512BW, kAvx512VL}) &&
                      has(c, {kAvx512Vnni});
    return features;
}

#endif

std::vector<const CpuKernels*> find_supported() {
    std::vector<const CpuKernels*> found;
#if defined(__x86_64__)
    const Features features = detect();
    if (features.avx512) found.push_back(&avx512_kernels);
    if (features.avx2) found.push_back(&avx2_kernels);
#endif
    found.push_back(&scalar_kernels);
    return found;
}

}  // namespace

std::span<const CpuKernels* const> supported_kernels() {
    static const std::vector<const CpuKernels*> found = find_supported();
    return found;
}

const CpuKernels& choose_kernels(std::string_view isa) {
    const char* from_environment = isa.empty() ? std::getenv("GGMLX_ISA") : nullptr;
    if (from_environment) isa = from_environment;
    std::string names;
    for (const CpuKernels* kernels : supported_kernels()) {
        if (isa.empty() || isa == kernels->name) return *kernels;
        names += (names.empty() ? "" : ", ") + std::string(kernels->name);
    }
    fail(ErrorKind::Unsupported, "{}: this machine has no instruction set called \"{}\"; it has {}",
         from_environment ? "GGMLX_ISA" : "--isa", isa, names);
}

std::string processor_name() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
        const size_t colon = line.find(':');
        if (line.rfind("model name", 0) == 0 && colon + 2 <= line.size()) return line.substr(colon + 2);
    }
    return "unknown processor";
}

}  // namespace ggmlx
