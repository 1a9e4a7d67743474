// quantization_error FILE ROW_LENGTH: quantizes a file of float32 values to every type on one thread and prints, per
// type, its name, root-mean-square error, bits per weight, and megabytes of float32 per second of
// processor time.
// scripts/compare_quantization.py makes a table of it.

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>

#include "ggmlx/core/buffer.h"
#include "ggmlx/core/error.h"
#include "ggmlx/quant/quantize.h"

namespace {

using namespace ggmlx;

double processor_seconds(DType dtype, const float* values, int64_t n_out, int64_t n_in, std::span<std::byte> dst) {
    const std::clock_t start = std::clock();
    quantize_matrix(dtype, values, n_out, n_in, dst, 1);
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

void print_table(const char* path, int64_t n_in) {
    const MappedFile file(path);
    const auto* values = reinterpret_cast<const float*>(file.bytes().data());
    const int64_t n_out = n_in > 0 ? static_cast<int64_t>(file.size()) / 4 / n_in : 0;
    require(n_out > 0, ErrorKind::InvalidArgument, "{} holds no row of {} values", path, n_in);
    for (uint32_t id = 0; id < kDTypeCount; ++id) {
        const DType dtype = *dtype_from_id(id);
        if (dtype == DType::I32) continue;
        Buffer stored(static_cast<size_t>(slice_bytes(dtype, {n_out, n_in})));
        const double seconds = processor_seconds(dtype, values, n_out, n_in, stored.bytes());
        const RoundTripError error = round_trip_error(dtype, values, stored.bytes(), n_out, n_in);
        fmt::print("{} {:.6g} {:.4g} {:.4g}\n", name(dtype), error.rmse, error.bits_per_weight,
                   static_cast<double>(n_out * n_in * 4) / 1e6 / seconds);
    }
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc != 3) {
        std::fputs("usage: quantization_error FILE ROW_LENGTH\n", stderr);
        return 2;
    }
    print_table(argv[1], std::atoll(argv[2]));
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
