#include "ggmlx/backend/cpu/ops/expert_groups.h"

namespace ggmlx::cpu {
namespace {

/// Counting sort: stable, so the result depends on ids alone.
void sort_pairs(const Choice& choice, const Groups& groups, CallStatus& status) noexcept {
    const int32_t* ids = choice.ids.as<const int32_t>();
    std::fill(groups.begin, groups.begin + choice.n_expert() + 1, 0);
    for (int64_t i = 0; i < choice.n_pairs(); ++i) {
        const int64_t slot = choice.slot_of(i, status);
        groups.is_used[i] = slot >= 0;
        if (slot < 0) continue;
        ++groups.begin[ids[i] + 1];
        groups.slot[ids[i]] = static_cast<int32_t>(slot);
    }
    int32_t n_active = 0, n_grouped = 0;
    for (int32_t e = 0; e < choice.n_expert(); ++e) {
        const int32_t n = groups.begin[e + 1];
        if (n > 0) groups.expert[n_active++] = e;
        groups.group[e] = n > kMaxColumns ? n_grouped : -1;
        if (n > kMaxColumns) n_grouped += static_cast<int32_t>(n_groups(n));
        groups.begin[e + 1] += groups.begin[e];
    }
    *groups.n_active = n_active;
    *groups.n_grouped = n_grouped;
    for (int64_t i = 0; i < choice.n_pairs(); ++i)
        if (groups.is_used[i]) groups.pairs[groups.begin[ids[i]]++] = static_cast<int32_t>(i);
    // Every begin now stands at its end, which is the next expert's begin.
    for (int64_t e = choice.n_expert(); e > 0; --e) groups.begin[e] = groups.begin[e - 1];
    groups.begin[0] = 0;
}

}  // namespace

void group_pairs(const Choice& choice, const Groups& groups, const OpCall& call, Worker& worker) noexcept {
    if (worker.team.index() == 0) sort_pairs(choice, groups, *call.status);
    worker.team.barrier();
}

void convert_chosen(const ActivationForm& form, const TensorView& x, const Choice& choice, const Groups& groups,
                    std::byte* dst, const OpCall& call, Worker& worker) noexcept {
    if (!form.is_converted()) return;
    const int64_t n = x.shape[-1], n_rows = x.shape.n_rows();
    const int64_t pairs_per_row = choice.n_pairs() / std::max<int64_t>(n_rows, 1);
    const float* values = x.as<const float>();
    constexpr int64_t kPiece = 32;  // blocks
    const int64_t n_pieces = ceil_div(form.n_blocks(), kPiece);
    worker.team.share(n_rows * n_pieces, 1, [&](int64_t i, int64_t) {
        const int64_t row = i / n_pieces, begin = i % n_pieces * kPiece;
        const uint8_t* used = groups.is_used + row * pairs_per_row;
        if (std::find(used, used + pairs_per_row, 1) == used + pairs_per_row) return;
        form.convert(values + row * n, begin, std::min(begin + kPiece, form.n_blocks()), dst + row * form.row_bytes(),
                     worker.kernels, *call.status, row * pairs_per_row / choice.k());
    });
}

}  // namespace ggmlx::cpu
