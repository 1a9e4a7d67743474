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
