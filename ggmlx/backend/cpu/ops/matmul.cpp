// Ops on a weight matrix.

#include <algorithm>

#include "ggmlx/backend/cpu/ops/activations.h"
#include "ggmlx/quant/blocks.h"

namespace ggmlx::cpu {
namespace {

/// Row `row` of a stored matrix as float32.
void decode_row(const TensorView& m, int64_t row, float* y) noexcept {
    const int64_t n = m.shape[1];
    const auto plain = [&]<class T>(const T* values, auto to_float) {
        for (int64_t k = 0; k < n; ++k) y[k] = to_float(values[row * n + k]);
    };
    switch (m.dtype) {
        case DType::F32:
            return plain(m.as<const float>(), [](float v) { return v; });
        case DType::F16:
            return plain(m.as<const uint16_t>(), f16_to_f32);
        case DType::BF16:
            return plain(m.as<const uint16_t>(), bf16_to_f32);
        default:
            with_tile(m.dtype, [&]<class Tile>(const Tile*) {
                const int block_len = static_cast<int>(info(m.dtype).block_len), r = static_cast<int>(row % kTileRows);
                const Tile* tile = m.as<const Tile>() + row / kTileRows * ceil_div(n, block_len);
                for (int64_t k = 0; k < n; k += block_len, ++tile)
                    for (int i = 0; i < block_len && k + i < n; ++i) y[k + i] = value(*tile, r, i);
            });
    }
}

}  // namespace

void get_rows_light(const OpCall& call, Worker& worker) noexcept {
    const TensorView& table = call.in[0];
    const int32_t* ids = call.in[1].as<const int32_t>();
    const int64_t n = table.shape[1];
    worker.team.share(call.in[1].shape[0], 1, [&](int64_t i, int64_t) {
        float* y = call.out[0].as<float>() + i * n;
        if (ids[i] >= 0 && ids[i] < table.shape[0]) return decode_row(table, ids[i], y);
        std::fill(y, y + n, 0.0f);
        if (ids[i] != -1) call.status->report(Fault::BadIndex, i);
    });
}

void matmul_light(const OpCall& call, Worker& worker) noexcept {
    const TensorView& x = call.in[1];
    const ActivationForm form(call.in[0].dtype, x.shape[1]);
    convert_rows(form, x.as<const float>(), x.shape[0], call.scratch, call, worker);
}

void matmul_heavy(const OpCall& call, Worker& worker) noexcept {
    const TensorView &w = call.in[0], &x = call.in[1];
    const int64_t n_out = w.shape[0], n_in = w.shape[1], n_tokens = x.shape[0];
    const ActivationRows rows = ActivationForm(w.dtype, n_in).rows(x.as<const float>(), call.scratch);
    const MatmulArgs args{w.data, n_out, n_in, nullptr};
    const int64_t n_tiles = ceil_div(n_out, kTileRows), tile_bytes = slice_bytes(w.dtype, {kTileRows, n_in});
    worker.team.share(n_tiles, grain(n_tiles, tile_bytes, worker.team.size()), [&](int64_t begin, int64_t end) {
        multiply_tiles(worker.kernels, w.dtype, args, n_tokens, begin, end, [&](int64_t t) {
            return Column{rows.row(t), call.out[0].as<float>() + t * n_out};
        });
    });
}

void head_matmul_light(const OpCall& call, Worker& worker) noexcept {
    const TensorView& x = call.in[1];
    const ActivationForm form(call.in[0].dtype, x.shape[2]);
    convert_rows(form, x.as<const float>(), x.shape[0] * x.shape[1], call.scratch, call, worker, x.shape[1]);
}

void head_matmul_heavy(const OpCall& call, Worker& worker) noexcept {
    const TensorView &w = call.in[0], &x = call.in[1];
    const int64_t n_head = w.shape[0], n_out = w.shape[1], n_in = w.shape[2], n_tokens = x.shape[0];
    const ActivationRows rows = ActivationForm(w.dtype, n_in).rows(x.as<const float>(), call.scratch);
    const int64_t n_tiles = ceil_div(n_out, kTileRows), tile_bytes = slice_bytes(w.dtype, {kTileRows, n_in});
    const int64_t head_bytes = slice_bytes(w.dtype, {n_out, n_in});
    const int64_t step = std::min(grain(n_head * n_tiles, tile_bytes, worker.team.size()), n_tiles);
    const int64_t n_pieces = ceil_div(n_tiles, step);
    worker.team.share(n_head * n_pieces, 1, [&](int64_t i, int64_t) {
        const int64_t head = i / n_pieces, begin = i % n_pieces * step, end = std::min(begin + step, n_tiles);
        const MatmulArgs args{w.data + head * head_bytes, n_out, n_in, nullptr};
        multiply_tiles(worker.kernels, w.dtype, args, n_tokens, begin, end, [&](int64_t t) {
            const int64_t row = t * n_head + head;
            return Column{rows.row(row), call.out[0].as<float>() + row * n_out};
        });
    });
}

size_t head_matmul_scratch(const Node& node, int) {
    const Tensor w = node.inputs[0], x = node.inputs[1];
    return static_cast<size_t>(x.dim(0) * x.dim(1) * ActivationForm(w.dtype(), w.dim(2)).row_bytes());
}

size_t matmul_scratch(const Node& node, int) {
    const Tensor w = node.inputs[0], x = node.inputs[1];
    return static_cast<size_t>(x.dim(0) * ActivationForm(w.dtype(), w.dim(1)).row_bytes());
}

}  // namespace ggmlx::cpu
