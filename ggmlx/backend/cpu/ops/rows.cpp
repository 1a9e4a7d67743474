// Ops on rows of float32, and on single values.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "ggmlx/backend/cpu/ops/ops.h"
#include "ggmlx/core/math.h"
#include "ggmlx/reference/exp.h"

namespace ggmlx::cpu {
namespace {

constexpr int64_t kPiece = 4096;  // values that a thread claims at once: some hundred nanoseconds of work

/// Calls f(row) for every row of x [.., n], several short ones to a claim.
template <class F>
void share_rows(const TensorView& x, Worker& worker, F f) noexcept {
    const int64_t n = std::max<int64_t>(x.shape[-1], 1);
    worker.team.share(x.shape.n_rows(), std::max<int64_t>(1, kPiece / n), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) f(row);
    });
}

/// Calls f(a, b, y, n) on matching pieces of a, b and y, where b has the shape of a or is one row of it.
template <class F>
void share_pairs(const OpCall& call, Worker& worker, F f) noexcept {
    const TensorView &a = call.in[0], &b = call.in[1];
    const bool repeats = b.shape.n_elements() != a.shape.n_elements();
    const int64_t n = repeats ? a.shape[-1] : a.shape.n_elements(), n_rows = repeats ? a.shape.n_rows() : 1;
    const int64_t n_pieces = ceil_div(n, kPiece);
    worker.team.share(n_rows * n_pieces, 1, [&](int64_t i, int64_t) {
        const int64_t column = i % n_pieces * kPiece, at = i / n_pieces * n + column;
        f(a.as<const float>() + at, b.as<const float>() + column, call.out[0].as<float>() + at,
          std::min(kPiece, n - column));
    });
}

const float* row_of(const TensorView& x, int64_t row) { return x.as<const float>() + row * x.shape[-1]; }
float* out_row(const OpCall& call, int64_t row) { return call.out[0].as<float>() + row * call.out[0].shape[-1]; }

/// The k largest of x, largest first, the lower index first among equals.
void choose_largest(const float* x, int64_t n, int64_t k, float* weights, int32_t* ids) noexcept {
    int64_t n_chosen = 0;
    for (int64_t i = 0; i < n; ++i) {
        if (n_chosen == k && !(x[i] > weights[k - 1])) continue;
        int64_t place = n_chosen < k ? n_chosen++ : k - 1;
        for (; place > 0 && x[i] > weights[place - 1]; --place) {
            weights[place] = weights[place - 1];
            ids[place] = ids[place - 1];
        }
        weights[place] = x[i];
        ids[place] = static_cast<int32_t>(i);
    }
}

}  // namespace

void add_light(const OpCall& call, Worker& worker) noexcept { share_pairs(call, worker, worker.kernels.add); }
void mul_light(const OpCall& call, Worker& worker) noexcept { share_pairs(call, worker, worker.kernels.mul); }

void swiglu_light(const OpCall& call, Worker& worker) noexcept {
    const auto& params = call.param<SwiGLUParams>();
    const SwiGLUArgs args{params.alpha, params.clamp, params.up_offset};
    share_pairs(call, worker, [&](const float* gate, const float* up, float* y, int64_t n) {
        worker.kernels.swiglu(gate, up, y, n, args);
    });
}

void scale_light(const OpCall& call, Worker& worker) noexcept {
    const float factor = call.param<ScaleParams>().factor;
    worker.team.share(call.in[0].shape.n_elements(), kPiece, [&](int64_t begin, int64_t end) {
        worker.kernels.scale(factor, call.in[0].as<const float>() + begin, call.out[0].as<float>() + begin,
                             end - begin);
    });
}

void rms_norm_light(const OpCall& call, Worker& worker) noexcept {
    const TensorView& x = call.in[0];
    const float eps = call.param<RmsNormParams>().eps;
    const float* weight = call.in.size() > 1 ? call.in[1].as<const float>() : nullptr;
    share_rows(x, worker, [&](int64_t row) {
        worker.kernels.rms_norm(row_of(x, row), weight, out_row(call, row), x.shape[-1], eps);
    });
}

void softmax_light(const OpCall& call, Worker& worker) noexcept {
    const TensorView& x = call.in[0];
    share_rows(x, worker,
               [&](int64_t row) { worker.kernels.softmax(row_of(x, row), out_row(call, row), x.shape[-1]); });
}

void divide_by_sum_light(const OpCall& call, Worker& worker) noexcept {
    const TensorView& x = call.in[0];
    share_rows(x, worker, [&](int64_t row) {
        float sum = 0.0f;
        for (int64_t i = 0; i < x.shape[-1]; ++i) sum += row_of(x, row)[i];
        worker.kernels.divide(sum < 1e-20f ? 1e-20f : sum, row_of(x, row), out_row(call, row), x.shape[-1]);
    });
}

void top_k_light(const OpCall& call, Worker& worker) noexcept {
    const TensorView& x = call.in[0];
    const int64_t n = x.shape[1], k = call.param<TopKParams>().k;
    const int32_t* rows = call.in.size() > 1 ? call.in[1].as<const int32_t>() : nullptr;
    share_rows(x, worker, [&](int64_t row) {
        float* weights = out_row(call, row);
        int32_t* ids = call.out[1].as<int32_t>() + row * k;
        const float* values = row_of(x, row);
        const bool is_padding = rows && rows[row] < 0;
        if (!is_padding && std::all_of(values, values + n, [](float v) { return std::isfinite(v); }))
            return choose_largest(values, n, k, weights, ids);
        std::fill(weights, weights + k, 0.0f);
        if (is_padding) return std::fill(ids, ids + k, -1);
        std::iota(ids, ids + k, 0);
        call.status->report(Fault::NonFinite, row);
    });
}

void clamp_light(const OpCall& call, Worker& worker) noexcept {
    const float limit = call.param<ClampParams>().limit;
    const float* x = call.in[0].as<const float>();
    float* y = call.out[0].as<float>();
    worker.team.share(call.in[0].shape.n_elements(), kPiece, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) y[i] = x[i] > limit ? limit : x[i] < -limit ? -limit : x[i];
    });
}

void sigmoid_gate_light(const OpCall& call, Worker& worker) noexcept {
    const TensorView& x = call.in[0];
    share_rows(x, worker, [&](int64_t row) {
        worker.kernels.scale(sigmoid(call.in[1].as<const float>()[row]), row_of(x, row), out_row(call, row),
                             x.shape[-1]);
    });
}

void slice_light(const OpCall& call, Worker& worker) noexcept {
    const int64_t first = call.param<SliceParams>().first;
    share_rows(call.out[0], worker, [&](int64_t row) {
        std::copy_n(row_of(call.in[0], row) + first, call.out[0].shape[-1], out_row(call, row));
    });
}

void concat_light(const OpCall& call, Worker& worker) noexcept {
    const TensorView &a = call.in[0], &b = call.in[1];
    share_rows(call.out[0], worker, [&](int64_t row) {
        float* behind = std::copy_n(row_of(a, row), a.shape[-1], out_row(call, row));
        std::copy_n(row_of(b, row), b.shape[-1], behind);
    });
}

void copy_light(const OpCall& call, Worker& worker) noexcept {
    constexpr int64_t kBytes = 64 << 10;
    const TensorView& x = call.in[0];
    worker.team.share(storage_bytes(x.dtype, x.shape), kBytes, [&](int64_t begin, int64_t end) {
        std::memcpy(call.out[0].data + begin, x.data + begin, static_cast<size_t>(end - begin));
    });
}

}  // namespace ggmlx::cpu
