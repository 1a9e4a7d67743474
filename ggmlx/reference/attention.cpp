#include <algorithm>
#include <cmath>

#include "ggmlx/reference/convert.h"
#include "ggmlx/reference/exp.h"
#include "ggmlx/reference/kernels.h"
#include "ggmlx/reference/sums.h"

namespace ggmlx::reference {
namespace {

/// The bytes of one head's row in a cache [n_blocks, n_head_kv, block_len, head_dim].
std::byte* cache_row(const TensorView& cache, int64_t block, int64_t head, int64_t row) {
    const int64_t index = (block * cache.shape[1] + head) * cache.shape[2] + row;
    return cache.data + index * cache_row_bytes(cache.dtype, cache.shape[3]);
}

/// Values of a head's result: the whole row of v_cache, or its beginning.
int64_t value_length(const OpCall& call) {
    const int64_t wanted = call.param<AttentionParams>().head_dim_v;
    return wanted > 0 ? wanted : call.in[2].shape[3];
}

/// What one token sees: positions first … last of a sequence, and the blocks that hold them.
struct Visible {
    const int32_t* blocks;
    int64_t first, last;
};

/// The row of one position and head as float32.
void load_row(const TensorView& cache, const Visible& visible, int64_t head, int64_t position, float* dst) {
    const int64_t block_len = cache.shape[2];
    const std::byte* row = cache_row(cache, visible.blocks[position / block_len], head, position % block_len);
    load_cache_row(cache.dtype, row, cache.shape[3], dst);
}

/// False if the token's sequence, position or a block it reads lies outside its table.
bool find_visible(const OpCall& call, int64_t t, Visible& visible) {
    const TensorView &cache = call.in[1], &table = call.in[3];
    const int32_t sequence = call.in[4].as<const int32_t>()[t], position = call.in[5].as<const int32_t>()[t];
    const int64_t n_positions = table.shape[1] * cache.shape[2];
    if (sequence < 0 || sequence >= table.shape[0] || position < 0 || position >= n_positions) return false;
    const int32_t window = call.param<AttentionParams>().window;
    visible.last = position;
    visible.first = window > 0 ? std::max(0, position - window + 1) : 0;
    visible.blocks = table.as<const int32_t>() + sequence * table.shape[1];
    return std::all_of(visible.blocks + visible.first / cache.shape[2], visible.blocks + position / cache.shape[2] + 1,
                       [&](int32_t block) { return block >= 0 && block < cache.shape[0]; });
}

/// One head of one token; q and y are its rows.
void attend(const OpCall& call, const Visible& visible, int64_t head, const float* q, float* y) {
    const TensorView &k_cache = call.in[1], &v_cache = call.in[2];
    const float scale = call.param<AttentionParams>().scale;
    const float* sinks = call.in.size() > 6 ? call.in[6].as<const float>() : nullptr;
    const int64_t head_dim = k_cache.shape[3], head_dim_v = value_length(call);
    const int64_t head_kv = head / (call.in[0].shape[1] / k_cache.shape[1]);
    std::vector<float> score, row(static_cast<size_t>(std::max(head_dim, v_cache.shape[3])));

    float largest = sinks ? sinks[head] : -INFINITY;
    for (int64_t j = visible.first; j <= visible.last; ++j) {
        load_row(k_cache, visible, head_kv, j, row.data());
        score.push_back(dot(q, row.data(), head_dim) * scale);
        largest = score.back() > largest ? score.back() : largest;
    }
    EightSums sums;
    std::fill(y, y + head_dim_v, 0.0f);
    for (int64_t j = visible.first; j <= visible.last; ++j) {
        const float e = exp_poly(score[static_cast<size_t>(j - visible.first)] - largest);
        sums[j] += e;
        load_row(v_cache, visible, head_kv, j, row.data());
        for (int64_t d = 0; d < head_dim_v; ++d) y[d] = std::fma(e, row[static_cast<size_t>(d)], y[d]);
    }
    float denominator = sums.total();
    if (sinks) denominator += exp_poly(sinks[head] - largest);
    for (int64_t d = 0; d < head_dim_v; ++d) y[d] = y[d] / denominator;
}

}  // namespace

void cache_append(const OpCall& call) {
    const TensorView &cache = call.out[0], &x = call.in[1];
    const int32_t* slots = call.in[2].as<const int32_t>();
    const int64_t n_head = x.shape[1], head_dim = x.shape[2], block_len = cache.shape[2];
    for (int64_t t = 0; t < x.shape[0]; ++t) {
        if (slots[t] == -1) continue;
        if (slots[t] < 0 || slots[t] >= cache.shape[0] * block_len) {
            call.status->report(Fault::BadIndex, t);
            continue;
        }
        for (int64_t h = 0; h < n_head; ++h)
            store_cache_row(cache.dtype, x.as<const float>() + (t * n_head + h) * head_dim, head_dim,
                            cache_row(cache, slots[t] / block_len, h, slots[t] % block_len));
    }
}

void attention(const OpCall& call) {
    const int64_t n_tokens = call.in[0].shape[0], n_head = call.in[0].shape[1], head_dim = call.in[0].shape[2];
    const int64_t head_dim_v = value_length(call);
    for (int64_t t = 0; t < n_tokens; ++t) {
        const float* q = call.in[0].as<const float>() + t * n_head * head_dim;
        float* y = call.out[0].as<float>() + t * n_head * head_dim_v;
        Visible visible;
        if (find_visible(call, t, visible)) {
            for (int64_t h = 0; h < n_head; ++h) attend(call, visible, h, q + h * head_dim, y + h * head_dim_v);
            continue;
        }
        std::fill(y, y + n_head * head_dim_v, 0.0f);
        if (call.in[4].as<const int32_t>()[t] != -1) call.status->report(Fault::BadIndex, t);
    }
}

}  // namespace ggmlx::reference
