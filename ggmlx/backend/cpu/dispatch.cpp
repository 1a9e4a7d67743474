#include "ggmlx/backend/cpu/dispatch.h"

#include <cstdlib>
#include <fstream>
#include <vector>

#include "ggmlx/core/dtype.h"
#include "ggmlx/core/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace ggmlx {
namespace {

#if defined(__x86_64__)

struct Features {
    bool avx2 = false, avx_vnni = false, avx512 = false, amx = false;
    bool amx_is_refused = false;  ///< the processor has it
    bool avx512_bf16 = false, amx_bf16 = false;
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

/// Linux gives a process the large AMX registers only if asked; using them unasked kills it.
bool amx_is_permitted() {
    constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

Features detect() {
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return {};
    constexpr int kFma = 12, kOsXsave = 27, kAvx = 28, kF16c = 29;
    if (!has(c, {kFma, kOsXsave, kAvx, kF16c})) return {};
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return {};
    constexpr int kAvx2 = 5, kAvx512F = 16, kAvx512DQ = 17, kAvx512BW = 30, kAvx512VL = 31;  // in EBX
    constexpr int kAvx512Vnni = 11;                                                          // in ECX
    constexpr int kAmxBf16 = 22, kAmxTile = 24, kAmxInt8 = 25;                               // in EDX
    const uint32_t saved = saved_state();
    Features features;
    features.avx2 = has(saved, {1, 2}) && has(b, {kAvx2});
    features.avx512 = features.avx2 && has(saved, {5, 6, 7}) && has(b, {kAvx512F, kAvx512DQ, kAvx512BW, kAvx512VL}) &&
                      has(c, {kAvx512Vnni});
    const bool has_amx = features.avx512 && has(d, {kAmxTile, kAmxInt8});
    features.amx = has_amx && has(saved, {17, 18}) && amx_is_permitted();
    features.amx_is_refused = has_amx && !features.amx;
    const bool has_amx_bf16 = has(d, {kAmxBf16});
    constexpr int kAvxVnni = 4, kAvx512Bf16 = 5;  // in EAX of the second page
    if (!__get_cpuid_count(7, 1, &a, &b, &c, &d)) return features;
    features.avx_vnni = features.avx2 && has(a, {kAvxVnni});
    features.avx512_bf16 = features.avx512 && has(a, {kAvx512Bf16});
    features.amx_bf16 = features.amx && features.avx512_bf16 && has_amx_bf16;
    return features;
}

const Features& features() {
    static const Features found = detect();
    return found;
}

/// `base` with the products that `newer` has.
CpuKernels with_products(const CpuKernels& base, const char* name, const MatmulKernels& newer) {
    CpuKernels kernels = base;
    kernels.name = name;
    kernels.int8_peak = newer.int8_peak;
    for (size_t i = 0; i < kDTypeCount; ++i) {
        if (newer.matmul[i]) kernels.matmul[i] = newer.matmul[i];
        if (newer.matmul_groups[i]) kernels.matmul_groups[i] = newer.matmul_groups[i];
    }
    return kernels;
}

#endif

std::vector<const CpuKernels*> find_supported() {
    std::vector<const CpuKernels*> found;
#if defined(__x86_64__)
    static const CpuKernels avx_vnni_kernels = with_products(avx2_kernels, "avx_vnni", avx_vnni_matmul);
    static const CpuKernels amx_kernels = with_products(avx512_kernels, "amx", amx_matmul);
    if (features().amx) found.push_back(&amx_kernels);
    if (features().avx512) found.push_back(&avx512_kernels);
    if (features().avx_vnni) found.push_back(&avx_vnni_kernels);
    if (features().avx2) found.push_back(&avx2_kernels);
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

CpuKernels with_fast_bf16(CpuKernels kernels) {
#if defined(__x86_64__)
    const std::string_view isa = kernels.name;
    if (isa == "amx" && features().amx_bf16)
        kernels.bf16 = amx_bf16_kernels;
    else if ((isa == "amx" || isa == "avx512") && features().avx512_bf16)
        kernels.bf16 = avx512_bf16_kernels;
#endif
    return kernels;
}

ProductKernels describe_products(const CpuKernels& kernels, DType weight) {
    if (kernels.bf16.matmul[static_cast<size_t>(weight)]) return {kernels.bf16.name, ""};
    if (kernels.matmul_groups[static_cast<size_t>(weight)]) return {fmt::format("{} int8", kernels.name), ""};
    return {fmt::format("{} float", kernels.float_name), fmt::format("{} has no int8 products", name(weight))};
}

std::string left_out_reason() {
#if defined(__x86_64__)
    if (features().amx_is_refused) return "amx left out: the system refuses its registers";
#endif
    return "";
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
