// The routed experts. Up to kFewColumns tokens: every (token, slot) pair is a product of one column. More: pairs are
// sorted by expert on the device, each expert's columns fill whole groups, and one launch multiplies all experts.

#include <algorithm>

#include "ggmlx/backend/cuda/kernels/products.cuh"
#include "ggmlx/backend/cuda/ops.h"

namespace ggmlx::cuda {
namespace {

/// Sizes of one call, known from shapes alone.
struct Pairs {
    int64_t n_tokens, k, n_slots;

    int64_t count() const { return n_tokens * k; }
    bool are_few() const { return n_tokens <= kFewColumns; }
    /// Each expert in use may leave one group part-filled.
    int64_t max_groups() const { return count() / kGroupWidth + std::min(n_slots, count()); }
    int64_t max_chunks() const { return max_groups() / chunk_groups() + std::min(n_slots, count()); }
    /// Chunks as an expert with an average number of columns fills them.
    int chunk_groups() const {
        return count() > kSmallChunkGroups * kGroupWidth * n_slots ? kChunkGroups : kSmallChunkGroups;
    }
};

/// Pairs sorted by expert.
struct Sorted {
    int32_t* column_pair = nullptr;  ///< [max_groups * 8]: the pair of a column, -1: none
    Chunk* chunks = nullptr;
    int32_t* n_chunks = nullptr;
};

int64_t sorted_bytes(const Pairs& p) {
    return align_scratch(p.max_groups() * kGroupWidth * 4) +
           align_scratch(p.max_chunks() * static_cast<int64_t>(sizeof(Chunk))) + kScratchAlignment;
}

Sorted place_sorted(std::byte*& memory, const Pairs& p) {
    Sorted s;
    s.column_pair = reinterpret_cast<int32_t*>(memory);
    s.chunks = reinterpret_cast<Chunk*>(memory + align_scratch(p.max_groups() * kGroupWidth * 4));
    s.n_chunks = reinterpret_cast<int32_t*>(memory + sorted_bytes(p) - kScratchAlignment);
    memory += sorted_bytes(p);
    return s;
}

/// One block: counts the pairs of every slot, gives each slot its groups, and deals out pairs and chunks. Where a pair
/// comes to lie within its expert's columns changes no result.
__global__ void sort_kernel(MatrixStack m, int64_t n_pairs, int64_t n_columns, int32_t chunk_groups, Sorted s) {
    extern __shared__ int32_t shared[];
    int32_t *count = shared, *first_group = shared + m.n_slots;
    for (int64_t i = threadIdx.x; i < m.n_slots; i += blockDim.x) count[i] = 0;
    for (int64_t i = threadIdx.x; i < n_columns; i += blockDim.x) s.column_pair[i] = -1;
    __syncthreads();
    const auto slot_of = [&](int64_t pair) {
        const int32_t id = m.ids[pair];
        if (id == -1) return -1;
        const bool is_expert = id >= 0 && id < m.n_expert;
        const int32_t slot = is_expert ? m.slots[id] : -1;
        if (is_expert && slot >= -1 && slot < m.n_slots) return slot;
        report(m.status, Fault::BadIndex, pair / m.row_divisor);
        return -1;
    };
    for (int64_t i = threadIdx.x; i < n_pairs; i += blockDim.x)
        if (const int32_t slot = slot_of(i); slot >= 0) atomicAdd(&count[slot], 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        int32_t groups = 0, chunks = 0;
        for (int32_t slot = 0; slot < m.n_slots; ++slot) {
            first_group[slot] = groups;
            const int32_t n = (count[slot] + kGroupWidth - 1) / kGroupWidth;
            for (int32_t g = 0; g < n; g += chunk_groups)
                s.chunks[chunks++] = {slot, groups + g, min(chunk_groups, n - g)};
            groups += n;
            count[slot] = 0;
        }
        *s.n_chunks = chunks;
    }
    __syncthreads();
    for (int64_t i = threadIdx.x; i < n_pairs; i += blockDim.x)
        if (const int32_t slot = slot_of(i); slot >= 0)
            s.column_pair[first_group[slot] * kGroupWidth + atomicAdd(&count[slot], 1)] = static_cast<int32_t>(i);
}

/// Rows of pairs whose expert is not here.
__global__ void zero_absent_kernel(MatrixStack m, float* rows, int64_t n) {
    const int64_t pair = blockIdx.x;
    const int32_t id = m.ids[pair];
    const int32_t slot = id >= 0 && id < m.n_expert ? m.slots[id] : -1;
    if (slot >= 0 && slot < m.n_slots) return;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) rows[pair * n + i] = 0.0f;
}

/// A stack from a call's weight and bias; ids and slots as all expert ops have them, inputs 1 and 2.
MatrixStack stack_of(const OpCall& call, size_t weight, const TensorView* bias) {
    const TensorView &w = call.in[weight], &ids = call.in[1], &slots = call.in[2];
    MatrixStack m;
    m.data = w.data;
    m.dtype = w.dtype;
    m.n_out = w.shape[1];
    m.n_in = w.shape[2];
    m.stride = w.slot_stride;
    m.n_slots = w.shape[0];
    m.ids = ids.as<const int32_t>();
    m.slots = slots.as<const int32_t>();
    m.n_expert = slots.shape[0];
    m.bias = bias ? bias->as<const float>() : nullptr;
    m.bias_stride = bias ? bias->slot_stride / static_cast<int64_t>(sizeof(float)) : 0;
    m.status = status_word(call);
    m.row_divisor = ids.shape[1];
    return m;
}

/// Rows [n_rows, n_in] that products read: pair i reads row i / divisor. With `up` the rows are swiglu(x, up).
struct Rows {
    const float* x;
    int64_t divisor;
    const float* up = nullptr;
    SwiGLUParams activation{};
};

ColumnSource source_of(const Rows& rows, int64_t n_in, const Pairs& p) {
    ColumnSource s;
    s.x = rows.x;
    s.n_in = n_in;
    s.up = rows.up;
    s.activation = rows.activation;
    s.report_divisor = p.k / (rows.divisor == 1 ? 1 : rows.divisor);
    return s;
}

/// Gate, up and down share what their rows become: one quantization for each order that their types read.
class Multiplier {
  public:
    Multiplier(const Pairs& pairs, const Sorted& sorted, std::byte* activations, StatusWord* status,
               const Launch& launch)
        : pairs_(pairs), sorted_(sorted), activations_(activations), status_(status), launch_(launch) {}

    static int64_t activation_memory(const Pairs& p, int64_t n_rows, int64_t n_in) {
        return static_cast<int64_t>(p.are_few() ? activation_bytes(n_rows, 1, n_in)
                                                : activation_bytes(p.max_groups(), kGroupWidth, n_in));
    }

    /// y[pair] = matrix of the pair · its row.
    void multiply(const MatrixStack& m, const Rows& rows, float* y) {
        if (!has_integer_products(m.dtype)) return multiply_floats(m, rows, y);
        const Activations& a = quantized(m, rows);
        if (pairs_.are_few()) return multiply_pairs(m, rows, a, y);
        ManyColumns args;
        args.m = m;
        args.a = a;
        args.chunks = sorted_.chunks;
        args.n_chunks = sorted_.n_chunks;
        args.max_chunks = pairs_.max_chunks();
        args.chunk_groups = pairs_.chunk_groups();
        args.column_row = sorted_.column_pair;
        args.y = y;
        args.y_stride = m.n_out;
        multiply_many(args, launch_);
    }

  private:
    const Pairs& pairs_;
    const Sorted& sorted_;
    std::byte* activations_;
    StatusWord* status_;
    const Launch& launch_;
    Activations kept_{};
    const float* kept_of_ = nullptr;
    bool kept_interleaved_ = false;

    const Activations& quantized(const MatrixStack& m, const Rows& rows) {
        const bool interleaved = is_interleaved(m.dtype);
        if (kept_of_ == rows.x && kept_interleaved_ == interleaved) return kept_;
        ColumnSource s = source_of(rows, m.n_in, pairs_);
        const int width = pairs_.are_few() ? 1 : kGroupWidth;
        if (pairs_.are_few()) {
            s.n_columns = s.n_groups = pairs_.count() / rows.divisor;
        } else {
            s.n_groups = pairs_.max_groups();
            s.n_columns = s.n_groups * width;
            s.rows = sorted_.column_pair;
            s.row_divisor = rows.divisor;
            s.report_divisor = pairs_.k;
        }
        kept_ = place_activations(activations_, s.n_groups, width, m.n_in);
        quantize_columns(s, kept_, interleaved, status_, launch_);
        kept_of_ = rows.x;
        kept_interleaved_ = interleaved;
        return kept_;
    }

    FewColumns pair_products(const MatrixStack& m, const Rows& rows, float* y) const {
        FewColumns args;
        args.m = m;
        args.n_products = pairs_.count();
        args.n_columns = 1;
        args.x_divisor = rows.divisor;
        args.y = y;
        args.y_stride = m.n_out;
        return args;
    }
    void multiply_pairs(const MatrixStack& m, const Rows& rows, const Activations& a, float* y) const {
        FewColumns args = pair_products(m, rows, y);
        args.a = a;
        multiply_few(args, launch_);
    }
    /// Types without integers: pair by pair; rows are floats, which were put together before.
    void multiply_floats(const MatrixStack& m, const Rows& rows, float* y) const {
        FewColumns args = pair_products(m, rows, y);
        args.x = rows.x;
        args.x_stride = m.n_in;
        multiply_few(args, launch_);
    }
};

__global__ void swiglu_rows_kernel(float* gate, const float* up, int64_t n, SwiGLUParams params) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < n; i += step)
        gate[i] = swiglu_exact(gate[i], up[i], params);
}

void sort_pairs(const MatrixStack& m, const Pairs& p, const Sorted& s, const Launch& launch) {
    if (p.are_few()) return;
    const size_t shared = static_cast<size_t>(m.n_slots) * 2 * sizeof(int32_t);
    sort_kernel<<<1, 1024, shared, launch.stream>>>(m, p.count(), p.max_groups() * kGroupWidth, p.chunk_groups(), s);
}

void zero_absent(const MatrixStack& m, const Pairs& p, float* rows, const Launch& launch) {
    if (p.are_few()) return;  // products of pairs write zeros themselves
    zero_absent_kernel<<<static_cast<unsigned>(p.count()), 128, 0, launch.stream>>>(m, rows, m.n_out);
}

/// Sizes of a node; ids are input 1.
Pairs pairs_of(const Node& node, Tensor weight) {
    return {node.inputs[1].dim(0), node.inputs[1].dim(1), weight.dim(0)};
}

}  // namespace

void expert_rows(const OpCall& call, const Launch& launch) {
    const auto& params = call.param<ExpertsParams>();
    const auto bias = [&](size_t i) { return params.has_bias ? &call.in[i] : nullptr; };
    const MatrixStack gate = stack_of(call, 3, bias(6)), up = stack_of(call, 4, bias(7)),
                      down = stack_of(call, 5, bias(8));
    const Pairs p{call.in[1].shape[0], call.in[1].shape[1], gate.n_slots};
    if (p.count() == 0) return;
    std::byte* memory = call.scratch;
    const Sorted sorted = place_sorted(memory, p);
    auto* gate_rows = reinterpret_cast<float*>(memory);
    float* up_rows = gate_rows + p.count() * gate.n_out;
    memory += align_scratch(2 * p.count() * gate.n_out * 4);
    sort_pairs(gate, p, sorted, launch);

    Multiplier multiplier(p, sorted, memory, status_word(call), launch);
    const Rows x{call.in[0].as<const float>(), p.k};
    multiplier.multiply(gate, x, gate_rows);
    multiplier.multiply(up, x, up_rows);
    Rows h{gate_rows, 1, up_rows, params.activation};
    if (!has_integer_products(down.dtype)) {
        swiglu_rows_kernel<<<static_cast<unsigned>(4 * launch.n_sm), 256, 0, launch.stream>>>(
            gate_rows, up_rows, p.count() * gate.n_out, params.activation);
        h.up = nullptr;
    }
    float* rows = call.out[0].as<float>();
    multiplier.multiply(down, h, rows);
    zero_absent(down, p, rows, launch);
}

void expert_matmul(const OpCall& call, const Launch& launch) {
    const MatrixStack m = stack_of(call, 3, call.param<ExpertsParams>().has_bias ? &call.in[4] : nullptr);
    const Pairs p{call.in[1].shape[0], call.in[1].shape[1], m.n_slots};
    if (p.count() == 0) return;
    std::byte* memory = call.scratch;
    const Sorted sorted = place_sorted(memory, p);
    sort_pairs(m, p, sorted, launch);
    const TensorView& x = call.in[0];
    Multiplier multiplier(p, sorted, memory, status_word(call), launch);
    float* rows = call.out[0].as<float>();
    multiplier.multiply(m, {x.as<const float>(), x.shape.rank() == 3 ? 1 : p.k}, rows);
    zero_absent(m, p, rows, launch);
}

size_t expert_rows_scratch(const Node& node) {
    const Tensor gate = node.inputs[3];
    const Pairs p = pairs_of(node, gate);
    const int64_t activations = std::max(Multiplier::activation_memory(p, p.n_tokens, gate.dim(2)),
                                         Multiplier::activation_memory(p, p.count(), gate.dim(1)));
    return static_cast<size_t>(sorted_bytes(p) + align_scratch(2 * p.count() * gate.dim(1) * 4) + activations);
}

size_t expert_matmul_scratch(const Node& node) {
    const Tensor weight = node.inputs[3];
    const Pairs p = pairs_of(node, weight);
    return static_cast<size_t>(sorted_bytes(p) + Multiplier::activation_memory(p, p.count(), weight.dim(2)));
}

namespace {

/// The rows that devices made, and which of them are theirs.
struct Parts {
    const int32_t* slots[kMaxParts];
    const float* rows[kMaxParts];
    int n;
    int64_t n_expert;
};

Parts parts_of(const OpCall& call, size_t first) {
    Parts parts{};
    for (size_t i = first; i + 1 < call.in.size(); i += 2) {
        parts.slots[parts.n] = call.in[i].as<const int32_t>();
        parts.rows[parts.n++] = call.in[i + 1].as<const float>();
        parts.n_expert = call.in[i].shape[0];
    }
    return parts;
}

/// The row of a pair at the first device that has the expert; null for id -1 and, reported, for one that none has.
__device__ const float* find_row(const Parts& parts, int32_t id, int64_t pair, int64_t n, StatusWord* status,
                                 int64_t token) {
    if (id == -1) return nullptr;
    for (int i = 0; i < parts.n; ++i)
        if (id >= 0 && id < parts.n_expert && parts.slots[i][id] >= 0) return parts.rows[i] + pair * n;
    report(status, Fault::BadIndex, token);
    return nullptr;
}

__global__ void select_kernel(Parts parts, const int32_t* ids, int64_t k, int64_t n, float* y, StatusWord* status) {
    __shared__ const float* row;
    const int64_t pair = blockIdx.x;
    if (threadIdx.x == 0) row = find_row(parts, ids[pair], pair, n, status, pair / k);
    __syncthreads();
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) y[pair * n + i] = row ? row[i] : 0.0f;
}

/// One thread per value; where the rows are is found out by one thread each.
__global__ void sum_kernel(Parts parts, const int32_t* ids, const float* weights, int k, int64_t n, float* y,
                           StatusWord* status) {
    __shared__ const float* row[kMaxExperts];
    __shared__ float weight[kMaxExperts];
    const int64_t t = blockIdx.x, i = blockIdx.y * static_cast<int64_t>(blockDim.x) + threadIdx.x;
    for (int s = threadIdx.x; s < k; s += blockDim.x) {
        row[s] = find_row(parts, ids[t * k + s], t * k + s, n, status, t);
        weight[s] = weights[t * k + s];
    }
    __syncthreads();
    if (i >= n) return;
    float sum = 0.0f;
#pragma unroll 8
    for (int s = 0; s < k; ++s)
        if (row[s]) sum = sum + weight[s] * row[s][i];
    y[t * n + i] = sum;
}

}  // namespace

void expert_select(const OpCall& call, const Launch& launch) {
    const Shape& shape = call.out[0].shape;
    if (shape.n_elements() == 0) return;
    select_kernel<<<static_cast<unsigned>(shape[0] * shape[1]), 256, 0, launch.stream>>>(
        parts_of(call, 1), call.in[0].as<const int32_t>(), shape[1], shape[2], call.out[0].as<float>(),
        status_word(call));
}

void expert_sum(const OpCall& call, const Launch& launch) {
    const int64_t n_tokens = call.out[0].shape[0], n = call.out[0].shape[1];
    if (n_tokens * n == 0) return;
    constexpr int kThreads = 256;
    const dim3 grid(static_cast<unsigned>(n_tokens), static_cast<unsigned>(ceil_div(n, kThreads)));
    sum_kernel<<<grid, kThreads, 0, launch.stream>>>(
        parts_of(call, 2), call.in[1].as<const int32_t>(), call.in[0].as<const float>(),
        static_cast<int>(call.in[1].shape[1]), n, call.out[0].as<float>(), status_word(call));
}

}  // namespace ggmlx::cuda
