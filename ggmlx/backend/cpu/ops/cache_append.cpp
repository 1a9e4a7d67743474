// Writes rows of keys or values into a cache, in the cache's type.

#include <algorithm>

#include "ggmlx/backend/cpu/ops/ops.h"

namespace ggmlx::cpu {

void cache_append_light(const OpCall& call, Worker& worker) noexcept {
    const TensorView &cache = call.out[0], &x = call.in[1];
    const int32_t* slots = call.in[2].as<const int32_t>();
    const int64_t n_head = x.shape[1], n = x.shape[2], block_len = cache.shape[2];
    const int64_t row_bytes = cache_row_bytes(cache.dtype, n);
    const auto store_row = worker.kernels.store_row[static_cast<size_t>(cache.dtype)];
    worker.team.share(x.shape[0] * n_head, std::max<int64_t>(1, 4096 / std::max<int64_t>(n, 1)),
                      [&](int64_t begin, int64_t end) {
                          for (int64_t i = begin; i < end; ++i) {
                              const int64_t slot = slots[i / n_head], head = i % n_head;
                              if (slot < 0 || slot >= cache.shape[0] * block_len) {
                                  if (slot != -1 && head == 0) call.status->report(Fault::BadIndex, i / n_head);
                                  continue;
                              }
                              const int64_t row = (slot / block_len * n_head + head) * block_len + slot % block_len;
                              store_row(x.as<const float>() + i * n, n, cache.data + row * row_bytes);
                          }
                      });
}

}  // namespace ggmlx::cpu
