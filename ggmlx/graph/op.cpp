#include "ggmlx/graph/op.h"

#include <array>
#include <cstddef>

namespace ggmlx {

std::string_view name(Op op) {
    constexpr std::array<std::string_view, kOpCount> kNames = {
        "get_rows",      "rms_norm",      "matmul",        "head_matmul", "add",          "mul",       "scale",
        "clamp",         "sigmoid_gate",  "slice",         "concat",      "swiglu",       "softmax",   "top_k",
        "divide_by_sum", "router",        "rope_table",    "rope",        "cache_append", "attention", "experts",
        "expert_rows",   "expert_matmul", "expert_select", "expert_sum",  "copy"};
    return kNames.at(static_cast<size_t>(op));
}

}  // namespace ggmlx
