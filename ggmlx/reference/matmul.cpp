#include <algorithm>

#include "ggmlx/reference/kernels.h"
#include "ggmlx/reference/matrix.h"

namespace ggmlx::reference {
namespace {

StoredMatrix matrix(const TensorView& w) { return {w.data, w.dtype, w.shape[0], w.shape[1]}; }

}  // namespace

void matmul(const OpCall& call) {
    const TensorView& x = call.in[1];
    multiply(matrix(call.in[0]), x.as<const float>(), x.shape[0], call.out[0].as<float>(), {call.status});
}

void head_matmul(const OpCall& call) {
    const TensorView &w = call.in[0], &x = call.in[1];
    const int64_t n_head = w.shape[0], n_out = w.shape[1], n_in = w.shape[2];
    for (int64_t h = 0; h < n_head; ++h) {
        const StoredMatrix head{w.data + h * slice_bytes(w.dtype, {n_out, n_in}), w.dtype, n_out, n_in};
        for (int64_t t = 0; t < x.shape[0]; ++t)
            multiply(head, x.as<const float>() + (t * n_head + h) * n_in, 1,
                     call.out[0].as<float>() + (t * n_head + h) * n_out, {call.status, t});
    }
}

void get_rows(const OpCall& call) {
    const StoredMatrix table = matrix(call.in[0]);
    const int32_t* ids = call.in[1].as<const int32_t>();
    float* y = call.out[0].as<float>();
    for (int64_t i = 0; i < call.in[1].shape[0]; ++i, y += table.n_in) {
        if (ids[i] >= 0 && ids[i] < table.n_out) {
            decode_row(table, ids[i], y);
            continue;
        }
        std::fill(y, y + table.n_in, 0.0f);
        if (ids[i] != -1) call.status->report(Fault::BadIndex, i);
    }
}

}  // namespace ggmlx::reference
