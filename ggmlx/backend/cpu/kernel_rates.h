#pragma once
// How fast the CPU's products run by themselves, beside the two rates that bound them: reading memory, and multiplying
// int8 values in registers.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "ggmlx/backend/cpu/cpu_backend.h"

namespace ggmlx {

/// A product of weights with so many columns.
struct KernelRate {
    DType dtype = DType::F32;
    int64_t n_columns = 0;
    double bytes_per_second = 0;  ///< of weights
    double ops_per_second = 0;    ///< two for every multiply-add
};

/// One instruction set with a team of threads.
class KernelRates {
  public:
    /// Throws as make_cpu_backend().
    explicit KernelRates(const CpuOptions& options);
    ~KernelRates();

    /// "Intel(R) Xeon(R) Processor, amx, 16 threads (16 physical cores)".
    std::string description() const;
    /// The instruction set's name, "avx512", or that of its products in bf16, "amx_bf16", where they are asked for.
    std::string isa() const;
    /// Bytes a second of a plain read of memory.
    double read_rate();
    /// Operations a second of a loop that only multiplies int8 values in registers.
    double int8_rate();
    /// Few columns: a matrix that fits no cache. Many: one that does, as then weights are read rarely. The best of
    /// several runs, which take about a tenth of a second.
    KernelRate rate(DType dtype, int64_t n_columns);

  private:
    const CpuOptions options_;
    const std::unique_ptr<Backend> cpu_;
};

/// The names of the instruction sets this machine has, best first.
std::vector<std::string> supported_isas();

}  // namespace ggmlx
