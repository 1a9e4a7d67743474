#include "ggmlx/backend/cpu/ops/activations.h"

#include <algorithm>

namespace ggmlx::cpu {

void ActivationForm::convert(const float* x, int64_t begin, int64_t end, std::byte* dst, const CpuKernels& kernels,
                             CallStatus& status, int64_t row) const noexcept {
    if (int8_) {
        if (!kernels.quantize_row(x, n_, begin, end, reinterpret_cast<ActivationBlock*>(dst)))
            status.report(Fault::NonFinite, row);
    } else if (padded_) {
        float* out = reinterpret_cast<float*>(dst);
        for (int64_t i = kBlock * begin; i < kBlock * end; ++i) out[i] = i < n_ ? x[i] : 0.0f;
    }
}

void convert_rows(const ActivationForm& form, const float* x, int64_t n_rows, std::byte* dst, const OpCall& call,
                  Worker& worker, int64_t rows_per_token) noexcept {
    if (!form.is_converted()) return;
    constexpr int64_t kPiece = 32;  // blocks: 4 KiB of x
    const int64_t n_pieces = ceil_div(form.n_blocks(), kPiece);
    worker.team.share(n_rows * n_pieces, 1, [&](int64_t i, int64_t) {
        const int64_t row = i / n_pieces, begin = i % n_pieces * kPiece;
        form.convert(x + row * form.n(), begin, std::min(begin + kPiece, form.n_blocks()), dst + row * form.row_bytes(),
                     worker.kernels, *call.status, row / rows_per_token);
    });
}

int64_t grain(int64_t n_items, int64_t item_bytes, int n_threads) noexcept {
    constexpr int64_t kWorthClaiming = 16 << 10;  // bytes: about a microsecond
    const int64_t fair = n_items / (8 * n_threads);
    return std::max({int64_t{1}, std::min(fair, int64_t{16}), std::min(kWorthClaiming / (item_bytes + 1), n_items)});
}

}  // namespace ggmlx::cpu
