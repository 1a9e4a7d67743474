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

namespace {

/// x [n_tokens, n_head, n_in] times one matrix per head; a plain product has one head.
struct Product {
    Product(const OpCall& c, int64_t heads, int n_threads)
        : call(c),
          dtype(c.in[0].dtype),
          n_head(heads),
          n_out(c.in[0].shape[-2]),
          n_in(c.in[0].shape[-1]),
          n_tokens(c.in[1].shape[0]),
          form(dtype, n_in),
          scratch(c.scratch),
          converted(scratch.take<std::byte>(n_head * form.bytes(n_tokens))),
          panels(scratch, form, n_tokens, n_threads) {}

    void convert(Worker& worker) const noexcept {
        convert_rows(form, call.in[1].as<const float>(), n_tokens, n_head, converted, call, worker);
    }
    void multiply(Worker& worker) const noexcept;
    void multiply_head(int64_t head, int64_t begin, int64_t end, Worker& worker) const noexcept;

    const OpCall& call;
    DType dtype;
    int64_t n_head, n_out, n_in, n_tokens;
    ActivationForm form;
    Scratch scratch;
    std::byte* converted;
    PanelScratch panels;
};

/// Row tiles [begin, end) of one head.
void Product::multiply_head(int64_t head, int64_t begin, int64_t end, Worker& worker) const noexcept {
    const MatmulArgs args{call.in[0].data + head * slice_bytes(dtype, {n_out, n_in}), n_out, n_in, nullptr};
    float* y = call.out[0].as<float>() + head * n_out;
    if (form.is_grouped(n_tokens)) {
        const auto* x = reinterpret_cast<const ActivationBlock*>(converted + head * form.group_bytes(n_tokens));
        return panels.multiply(worker.kernels, dtype, args, {x, n_tokens, y, n_head * n_out, nullptr}, begin, end,
                               worker.team.index());
    }
    const ActivationRows rows = form.rows(call.in[1].as<const float>(), converted);
    multiply_tiles(worker.kernels, dtype, args, n_tokens, begin, end, [&](int64_t t) {
        return Column{rows.row(t * n_head + head), y + t * n_head * n_out};
    });
}

void Product::multiply(Worker& worker) const noexcept {
    const int64_t n_tiles = ceil_div(n_out, kTileRows), tile_bytes = slice_bytes(dtype, {kTileRows, n_in});
    const int64_t least = form.is_grouped(n_tokens) ? panels.n_tiles() : 1;
    const int64_t fair = std::max<int64_t>(1, n_head * n_tiles / (3 * worker.team.size()));
    const int64_t step =
        std::min({std::max(std::min(least, fair), grain(n_head * n_tiles, tile_bytes, worker.team.size())), n_tiles});
    const int64_t n_pieces = ceil_div(n_tiles, step);
    worker.team.share(n_head * n_pieces, 1, [&](int64_t i, int64_t) {
        const int64_t begin = i % n_pieces * step;
        multiply_head(i / n_pieces, begin, std::min(begin + step, n_tiles), worker);
    });
}

size_t product_scratch(const Node& node, int64_t n_head, int n_threads) {
    const Tensor w = node.inputs[0], x = node.inputs[1];
    const ActivationForm form(w.dtype(), w.dim(-1));
    Scratch scratch(nullptr);
    scratch.take<std::byte>(n_head * form.bytes(x.dim(0)));
    const PanelScratch panels(scratch, form, x.dim(0), n_threads);
    return scratch.used_bytes();
}

int64_t heads_of(const OpCall& call) { return call.in[0].shape[0]; }

}  // namespace

void matmul_light(const OpCall& call, Worker& worker) noexcept {
    Product(call, 1, worker.team.n_threads()).convert(worker);
}
void matmul_heavy(const OpCall& call, Worker& worker) noexcept {
    Product(call, 1, worker.team.n_threads()).multiply(worker);
}
void head_matmul_light(const OpCall& call, Worker& worker) noexcept {
    Product(call, heads_of(call), worker.team.n_threads()).convert(worker);
}
void head_matmul_heavy(const OpCall& call, Worker& worker) noexcept {
    Product(call, heads_of(call), worker.team.n_threads()).multiply(worker);
}

size_t matmul_scratch(const Node& node, const TeamSize& team) { return product_scratch(node, 1, team.n_threads); }
size_t head_matmul_scratch(const Node& node, const TeamSize& team) {
    return product_scratch(node, node.inputs[0].dim(0), team.n_threads);
}

}  // namespace ggmlx::cpu
