#include "ggmlx/backend/cpu/ops/feed_forward.h"

#include <array>

#include "ggmlx/backend/cpu/ops/expert_stack.h"

namespace ggmlx::cpu {
namespace {

/// What the scratch of a block depends on.
struct BlockSizes {
    const CpuKernels& kernels;
    DType gate, up, down;
    int64_t n_tokens, n_pairs, n_expert, n_embd, n_ff;
    int n_threads, n_shards;

    ActivationForm x_form() const { return {kernels, gate, n_embd}; }
    ActivationForm up_form() const { return {kernels, up, n_embd}; }
    bool is_up_like_gate() const { return up_form() == x_form(); }
    /// Of the two forms of x the one that needs the larger panels, if any does.
    ActivationForm panel_form() const {
        return x_form().panel_bytes() >= up_form().panel_bytes() ? x_form() : up_form();
    }
    int64_t n_ff_of(int shard) const { return shard_extent(n_ff, shard, n_shards); }
    int64_t n_embd_of(int shard) const { return shard_extent(n_embd, shard, n_shards); }
    /// Whether a shard has whole rows of down, and not columns of all.
    bool has_rows() const { return n_shards > 1 && !keeps_partial_sums(down); }
    /// h as a shard reads it.
    ActivationForm h_form(int shard) const {
        return has_rows() ? ActivationForm(kernels, down, n_ff)
                          : ActivationForm(kernels, down, n_ff_of(shard), 8 / n_shards);
    }
};

/// Scratch that all shards read.
struct SharedScratch {
    Groups groups;
    ExpertColumns x, x_up;  ///< as gate reads it, and as up does if that differs
    float* h_values;        ///< [n_pairs, n_ff], and as down reads it: where shards have rows of down
    ExpertColumns h;
    PanelScratch x_panels, h_panels;

    SharedScratch(Scratch& s, const BlockSizes& b)
        : groups(s, b.n_pairs, b.n_expert),
          x(s, b.x_form(), b.n_tokens, b.n_pairs, b.n_expert),
          x_up(s, b.up_form(), b.is_up_like_gate() ? 0 : b.n_tokens, b.is_up_like_gate() ? 0 : b.n_pairs, b.n_expert),
          h_values(s.take<float>(b.has_rows() ? b.n_pairs * b.n_ff : 0)),
          h(s, b.h_form(0), b.has_rows() ? b.n_pairs : 0, b.has_rows() ? b.n_pairs : 0, b.n_expert),
          x_panels(s, b.panel_form(), b.n_pairs, b.n_threads),
          h_panels(s, b.h_form(0), b.n_pairs, b.n_threads) {}  // no shard is larger than the first
};

/// Scratch of one shard: a row per pair each.
struct ShardScratch {
    float *gate, *up;
    ExpertColumns h;  ///< of its own part, where shards have columns of down
    float* rows;      ///< [n_pairs, n_embd], none for the first shard: its rows are the result; or its rows of all

    ShardScratch(Scratch& s, const BlockSizes& b, int shard)
        : gate(s.take<float>(b.n_pairs * b.n_ff_of(shard))),
          up(s.take<float>(b.n_pairs * b.n_ff_of(shard))),
          h(s, b.h_form(shard), b.has_rows() ? 0 : b.n_pairs, b.has_rows() ? 0 : b.n_pairs, b.n_expert),
          rows(s.take<float>(b.n_pairs * (b.has_rows() ? b.n_embd_of(shard)
                                          : shard == 0 ? 0
                                                       : b.n_embd))) {}
};

/// One step's block with its scratch.
class FeedForward {
  public:
    FeedForward(const OpCall& call, const Choice& choice, Scratch scratch, const Worker& worker)
        : call_(call),
          choice_(choice),
          sizes_(sizes_of(call, choice, worker)),
          shared_(scratch, sizes_),
          rest_(scratch) {}

    void prepare(Worker& worker) const noexcept;
    void run(float* rows, Worker& worker) const noexcept;

  private:
    const OpCall& call_;
    const Choice& choice_;
    const BlockSizes sizes_;
    const SharedScratch shared_;
    const Scratch rest_;  ///< the shards', one after the other

    static BlockSizes sizes_of(const OpCall& call, const Choice& choice, const Worker& worker) {
        const TensorView &gate = call.in[3], &up = call.in[4], &down = call.in[5];
        return {worker.kernels,   gate.dtype,        up.dtype,      down.dtype,    call.in[0].shape[0],
                choice.n_pairs(), choice.n_expert(), gate.shape[2], gate.shape[1], worker.team.n_threads(),
                gate.n_shards};
    }
    const TensorView* bias(size_t i) const { return call_.param<ExpertsParams>().has_bias ? &call_.in[i] : nullptr; }
    Stack gate(int shard) const { return rows_of_shard(call_.in[3], bias(6), shard); }
    Stack up(int shard) const { return rows_of_shard(call_.in[4], bias(7), shard); }
    int64_t token_of(int64_t pair) const { return pair / choice_.k(); }

    ShardScratch scratch_of(int shard) const {
        Scratch scratch = rest_;
        for (int before = 0; before < shard; ++before) ShardScratch(scratch, sizes_, before);
        return {scratch, sizes_, shard};
    }
    template <class F>
    void for_own_shards(const Member& team, F f) const;
    void first_half(int shard, Among among, Worker& worker) const noexcept;
    SwiGLUArgs activation() const {
        const SwiGLUParams& p = call_.param<ExpertsParams>().activation;
        return {p.alpha, p.clamp, p.up_offset};
    }
    /// Where column c of an expert begins in h, its row or its place in a group.
    std::byte* column_of(const ExpertColumns& h, int64_t e, int64_t c) const;
    void activate(int64_t e, int64_t begin, int64_t end, int64_t n_ff, const ShardScratch& own,
                  const CpuKernels& kernels) const noexcept;
    void activate_shared(int64_t e, int64_t begin, int64_t end, int shard, const ShardScratch& own,
                         const CpuKernels& kernels) const noexcept;
    void second_half(int shard, Among among, float* rows, Worker& worker) const noexcept;
    void add_shards(float* rows, Worker& worker) const noexcept;
    void join_rows(float* rows, Worker& worker) const noexcept;
};

void FeedForward::prepare(Worker& worker) const noexcept {
    group_pairs(choice_, shared_.groups, call_, worker);
    for (const ExpertColumns* x : {&shared_.x, &shared_.x_up}) {
        if (x == &shared_.x_up && sizes_.is_up_like_gate()) break;
        convert_chosen(x->form, call_.in[0], choice_, shared_.groups, x->rows, call_, worker);
        worker.team.barrier();
        gather_columns(
            *x, call_.in[0].as<const float>(), shared_.groups, [&](int64_t pair) { return token_of(pair); }, worker);
    }
}

/// Calls f(shard, who works on it) for the shards that this thread works on: that of its group, or all of them beside
/// everybody else where the team has no such groups.
template <class F>
void FeedForward::for_own_shards(const Member& team, F f) const {
    if (sizes_.n_shards > 1 && team.n_groups() == sizes_.n_shards) return f(team.group(), Among::Group);
    for (int shard = 0; shard < sizes_.n_shards; ++shard) f(shard, Among::Team);
}

void FeedForward::run(float* rows, Worker& worker) const noexcept {
    for_own_shards(worker.team, [&](int shard, Among among) { first_half(shard, among, worker); });
    worker.team.barrier();
    clear_unused(shared_.groups, sizes_.n_pairs, rows, sizes_.n_embd, worker);
    for_own_shards(worker.team, [&](int shard, Among among) { second_half(shard, among, rows, worker); });
    if (sizes_.n_shards == 1) return;
    worker.team.barrier();
    if (sizes_.has_rows())
        join_rows(rows, worker);
    else
        add_shards(rows, worker);
}

/// h = swiglu(gate · x, up · x), already in the form that down reads.
void FeedForward::first_half(int shard, Among among, Worker& worker) const noexcept {
    const ShardScratch own = scratch_of(shard);
    const Stack gate_stack = gate(shard), up_stack = up(shard);
    const ExpertColumns& x_up = sizes_.is_up_like_gate() ? shared_.x : shared_.x_up;
    const float* values = call_.in[0].as<const float>();
    const auto row_of_pair = [&](int64_t pair) { return token_of(pair); };
    const int64_t least = *shared_.groups.n_grouped > 0 ? (shared_.x_panels.n_tiles() + 1) / 2 : 1;
    const int64_t block_bytes = 2 * (gate_stack.tile_bytes() + up_stack.tile_bytes());
    share_experts(shared_.groups, ceil_div(gate_stack.n_out, kBlock), block_bytes, least, among, worker,
                  [&](int64_t e, int64_t begin, int64_t end) {
                      const int64_t last_tile = std::min(2 * end, gate_stack.n_row_tiles());
                      multiply_expert(gate_stack, e, shared_.groups, shared_.x, values, row_of_pair, shared_.x_panels,
                                      own.gate, 2 * begin, last_tile, worker);
                      multiply_expert(up_stack, e, shared_.groups, x_up, values, row_of_pair, shared_.x_panels, own.up,
                                      2 * begin, last_tile, worker);
                      if (sizes_.has_rows())
                          activate_shared(e, begin, end, shard, own, worker.kernels);
                      else
                          activate(e, begin, end, gate_stack.n_out, own, worker.kernels);
                  });
}

std::byte* FeedForward::column_of(const ExpertColumns& h, int64_t e, int64_t c) const {
    if (h.is_grouped(shared_.groups, e))
        return reinterpret_cast<std::byte*>(h.groups_of(shared_.groups, e) + h.form.group_block(c));
    return h.rows + shared_.groups.pairs_of(e)[static_cast<size_t>(c)] * h.form.row_bytes();
}

/// 32-row blocks [begin, end) of one expert; n_ff: of the shard.
void FeedForward::activate(int64_t e, int64_t begin, int64_t end, int64_t n_ff, const ShardScratch& own,
                           const CpuKernels& kernels) const noexcept {
    const int64_t first = kBlock * begin, n = std::min(kBlock * end, n_ff) - first;
    const std::span<const int32_t> pairs = shared_.groups.pairs_of(e);
    const auto n_pairs = static_cast<int64_t>(pairs.size());
    const ColumnForm as = own.h.form.columns(n_pairs);
    for (int64_t c = 0; c < n_pairs; ++c) {
        const int64_t pair = pairs[static_cast<size_t>(c)];
        float* g = own.gate + pair * n_ff;
        kernels.swiglu(g + first, own.up + pair * n_ff + first, g + first, n, activation());
        own.h.form.convert(g, begin, end, column_of(own.h, e, c), kernels, *call_.status, token_of(pair), as);
    }
    if (as != ColumnForm::Rows) own.h.form.clear_group_end(own.h.groups_of(shared_.groups, e), n_pairs, begin, end);
}

/// The same for the h of all shards: block i of this one is block shard + i · n_shards of h.
void FeedForward::activate_shared(int64_t e, int64_t begin, int64_t end, int shard, const ShardScratch& own,
                                  const CpuKernels& kernels) const noexcept {
    const ExpertColumns& h = shared_.h;
    const int64_t own_ff = sizes_.n_ff_of(shard), n_ff = sizes_.n_ff;
    const std::span<const int32_t> pairs = shared_.groups.pairs_of(e);
    const auto n_pairs = static_cast<int64_t>(pairs.size());
    const ColumnForm as = h.form.columns(n_pairs);
    for (int64_t i = begin; i < end; ++i) {
        const int64_t b = shard + i * sizes_.n_shards, n = std::min(kBlock, n_ff - kBlock * b);
        for (int64_t c = 0; c < n_pairs; ++c) {
            const int64_t pair = pairs[static_cast<size_t>(c)], at = pair * own_ff + kBlock * i;
            float* values = shared_.h_values + pair * n_ff;
            kernels.swiglu(own.gate + at, own.up + at, values + kBlock * b, n, activation());
            h.form.convert(values, b, b + 1, column_of(h, e, c), kernels, *call_.status, token_of(pair), as);
        }
        if (as != ColumnForm::Rows) h.form.clear_group_end(h.groups_of(shared_.groups, e), n_pairs, b, b + 1);
    }
}

void FeedForward::second_half(int shard, Among among, float* rows, Worker& worker) const noexcept {
    const ShardScratch own = scratch_of(shard);
    const auto row_of_pair = [](int64_t pair) { return pair; };
    if (sizes_.has_rows())
        return multiply_pairs(rows_of_shard(call_.in[5], bias(8), shard), shared_.groups, shared_.h, shared_.h_values,
                              row_of_pair, shared_.h_panels, own.rows, among, worker);
    Stack down = columns_of_shard(call_.in[5], shard);
    if (sizes_.n_shards == 1) down.set_bias(bias(8), 0);
    multiply_pairs(down, shared_.groups, own.h, own.gate, row_of_pair, shared_.h_panels, shard == 0 ? rows : own.rows,
                   among, worker);
}

/// Puts the blocks of 32 rows of down that each shard has computed side by side.
void FeedForward::join_rows(float* rows, Worker& worker) const noexcept {
    std::array<const float*, kMaxShards> shard_rows{};
    for (int shard = 0; shard < sizes_.n_shards; ++shard)
        shard_rows[static_cast<size_t>(shard)] = scratch_of(shard).rows;
    worker.team.share(sizes_.n_pairs, 1, [&](int64_t pair, int64_t) {
        if (!shared_.groups.is_used[pair]) return;
        for (int64_t b = 0; b < ceil_div(sizes_.n_embd, kBlock); ++b) {
            const auto shard = static_cast<int>(b % sizes_.n_shards);
            const float* from = shard_rows[static_cast<size_t>(shard)] + pair * sizes_.n_embd_of(shard);
            std::copy_n(from + b / sizes_.n_shards * kBlock, std::min(kBlock, sizes_.n_embd - kBlock * b),
                        rows + pair * sizes_.n_embd + kBlock * b);
        }
    });
}

/// Adds the rows of all shards to those of the first: pairwise, as partial sums are added, then the bias.
void FeedForward::add_shards(float* rows, Worker& worker) const noexcept {
    constexpr int64_t kPiece = 1024;
    std::array<float*, kMaxShards> shard_rows{rows};
    for (int shard = 1; shard < sizes_.n_shards; ++shard)
        shard_rows[static_cast<size_t>(shard)] = scratch_of(shard).rows;
    const TensorView* down_bias = bias(8);
    const int32_t* ids = choice_.ids.as<const int32_t>();
    const int64_t n = sizes_.n_embd, n_pieces = ceil_div(n, kPiece);
    worker.team.share(sizes_.n_pairs * n_pieces, 1, [&](int64_t i, int64_t) {
        const int64_t pair = i / n_pieces, begin = i % n_pieces * kPiece, count = std::min(kPiece, n - begin);
        if (!shared_.groups.is_used[pair]) return;
        const auto at = [&](int shard) { return shard_rows[static_cast<size_t>(shard)] + pair * n + begin; };
        for (int width = sizes_.n_shards / 2; width > 0; width /= 2)
            for (int shard = 0; shard < width; ++shard)
                worker.kernels.add(at(shard), at(shard + width), at(shard), count);
        if (!down_bias) return;
        const std::byte* b = down_bias->data + shared_.groups.slot[ids[pair]] * down_bias->slot_stride;
        worker.kernels.add(at(0), reinterpret_cast<const float*>(b) + begin, at(0), count);
    });
}

size_t scratch_for(BlockSizes sizes, int n_shards) {
    sizes.n_shards = n_shards;
    Scratch scratch(nullptr);
    const SharedScratch shared(scratch, sizes);
    for (int shard = 0; shard < n_shards; ++shard) ShardScratch(scratch, sizes, shard);
    return scratch.used_bytes();
}

}  // namespace

void prepare_feed_forward(const OpCall& call, const Choice& choice, Scratch scratch, Worker& worker) noexcept {
    FeedForward(call, choice, scratch, worker).prepare(worker);
}

void run_feed_forward(const OpCall& call, const Choice& choice, Scratch scratch, float* rows, Worker& worker) noexcept {
    FeedForward(call, choice, scratch, worker).run(rows, worker);
}

size_t feed_forward_scratch(const Node& node, const TeamKernels& team) {
    const Tensor x = node.inputs[0], ids = node.inputs[1];
    const Tensor gate = node.inputs[3], up = node.inputs[4], down = node.inputs[5];
    // Experts has no slot table: its experts are its slots. Others: slot_of_expert says how many experts there are.
    const Tensor slots = node.op == Op::Experts ? gate : node.inputs[2];
    const BlockSizes sizes{team.kernels, gate.dtype(), up.dtype(),  down.dtype(),   x.dim(0), ids.shape().n_elements(),
                           slots.dim(0), gate.dim(2),  gate.dim(1), team.n_threads, 1};
    return std::max(scratch_for(sizes, 1), scratch_for(sizes, team.n_groups));
}

}  // namespace ggmlx::cpu
