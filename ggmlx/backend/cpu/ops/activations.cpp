#include "ggmlx/backend/cpu/ops/activations.h"

#include <algorithm>

namespace ggmlx::cpu {

void ActivationForm::convert(const float* x, int64_t begin, int64_t end, std::byte* dst, const CpuKernels& kernels,
                             CallStatus& status, int64_t row, ColumnForm as) const noexcept {
    if (as == ColumnForm::Bf16Groups) {
        if (!round(x, begin, end, dst, kernels) && int8_) status.report(Fault::NonFinite, row);
    } else if (int8_) {
        if (!kernels.quantize_row(x, n_, begin, end, reinterpret_cast<ActivationBlock*>(dst),
                                  as == ColumnForm::Int8Groups ? n_partials_ : 0))
            status.report(Fault::NonFinite, row);
    } else if (padded_) {
        float* out = reinterpret_cast<float*>(dst);
        for (int64_t i = kBlock * begin; i < kBlock * end; ++i) out[i] = i < n_ ? x[i] : 0.0f;
    }
}

void ActivationForm::clear_group_end(ActivationBlock* groups, int64_t n, int64_t begin, int64_t end) const noexcept {
    for (int64_t c = n; c < n_groups(n) * kGroupColumns; ++c)
        for (int64_t b = begin; b < end; ++b) groups[group_block(c, b)] = ActivationBlock{};
}

void convert_rows(const ActivationForm& form, const float* x, int64_t n_tokens, int64_t n_head, std::byte* dst,
                  const OpCall& call, Worker& worker) noexcept {
    const ColumnForm as = form.columns(n_tokens);
    const bool grouped = as != ColumnForm::Rows;
    if (!grouped && !form.is_converted()) return;
    constexpr int64_t kPiece = 32;  // blocks: 4 KiB of x
    const int64_t n_pieces = ceil_div(form.n_blocks(), kPiece);
    worker.team.share(n_tokens * n_head * n_pieces, 1, [&](int64_t i, int64_t) {
        const int64_t row = i / n_pieces, t = row / n_head, head = row % n_head;
        const int64_t begin = i % n_pieces * kPiece, end = std::min(begin + kPiece, form.n_blocks());
        const float* values = x + row * form.n();
        if (!grouped)
            return form.convert(values, begin, end, dst + row * form.row_bytes(), worker.kernels, *call.status, t);
        auto* groups = reinterpret_cast<ActivationBlock*>(dst + head * form.group_bytes(n_tokens));
        auto* column = reinterpret_cast<std::byte*>(groups + form.group_block(t));
        form.convert(values, begin, end, column, worker.kernels, *call.status, t, as);
        if (t == n_tokens - 1) form.clear_group_end(groups, n_tokens, begin, end);
    });
}

int64_t grain(int64_t n_items, int64_t item_bytes, int n_threads) noexcept {
    constexpr int64_t kWorthClaiming = 16 << 10;  // bytes: about a microsecond
    const int64_t fair = n_items / (8 * n_threads);
    return std::max({int64_t{1}, std::min(fair, int64_t{16}), std::min(kWorthClaiming / (item_bytes + 1), n_items)});
}

}  // namespace ggmlx::cpu
