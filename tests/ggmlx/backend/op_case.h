#pragma once
// One op with its bytes, run by the reference and by backends on the same inputs. Results are compared byte for byte.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "ggmlx/backend/backend.h"
#include "ggmlx/backend/host_memory.h"
#include "ggmlx/graph/expert_parts.h"
#include "ggmlx/reference/support.h"

namespace ggmlx::test {

/// Hands out one segment, then nothing.
class OneSegment : public SegmentSource {
  public:
    explicit OneSegment(std::vector<OpCall*> calls) : calls_(std::move(calls)) {}
    std::span<OpCall* const> next() noexcept override {
        if (given_) return {};
        given_ = true;
        return calls_;
    }

  private:
    std::vector<OpCall*> calls_;
    bool given_ = false;
};

/// Inputs are given as arrays; the graph's last node is the op. Arrays' views name the shapes a kernel sees.
class OpCase {
  public:
    Graph graph;

    Tensor input(Array a) {
        return keep(graph.input("in" + std::to_string(arrays_.size()), a.dtype, a.shape), std::move(a));
    }
    Tensor weight(Array a) { return in_set(std::move(a), TensorKind::Weight); }
    Tensor state(Array a) { return in_set(std::move(a), TensorKind::State); }

    struct Result {
        std::vector<std::vector<std::byte>> outputs;
        Fault fault = Fault::None;
        int64_t row = 0;
    };
    Result run_reference_op() const {
        return run([](const OpCall& call, const Node&) { run_reference(call); });
    }
    /// edit: changes the call before it runs.
    Result run_on(Backend& backend, const std::function<void(OpCall&)>& edit = {}) const {
        return run([&](OpCall& call, const Node& node) {
            if (edit) edit(call);
            EXPECT_TRUE(backend.supports(node)) << name(node.op);
            if (backend.reaches_host()) return run_in_own_memory(backend, call, node);
            // One byte more than asked for, so that a write past the end of the scratch is seen.
            const size_t size = backend.scratch_bytes(node);
            auto scratch = backend.alloc(size + 1);
            scratch.get()[size] = kGuard;
            call.scratch = scratch.get();
            OneSegment source({&call});
            backend.run(source);
            EXPECT_EQ(scratch.get()[size], kGuard)
                << name(node.op) << " wrote past its scratch of " << size << " bytes";
        });
    }

  private:
    static constexpr std::byte kGuard{0x5a};
    TensorSet set_;
    std::deque<Array> arrays_;
    std::map<const TensorInfo*, const Array*> array_of_;

    Tensor keep(Tensor t, Array a) {
        arrays_.push_back(std::move(a));
        array_of_[&t.info()] = &arrays_.back();
        return t;
    }
    Tensor in_set(Array a, TensorKind kind) {
        const std::string label = "w" + std::to_string(arrays_.size());
        return keep(set_.add(label, a.dtype, a.shape, Role::Dense, kind), std::move(a));
    }

    /// The views' bytes in memory of the device and back.
    static void run_in_own_memory(Backend& backend, OpCall& call, const Node& node) {
        std::vector<std::shared_ptr<std::byte>> memory;
        const auto size_of = [](const TensorView& v) {
            return v.slot_stride > 0 ? static_cast<size_t>(v.slot_stride * v.shape[0])
                                     : static_cast<size_t>(storage_bytes(v.dtype, v.shape));
        };
        const auto on_device = [&](TensorView view) {
            memory.push_back(backend.alloc(size_of(view) + 1));
            backend.upload(memory.back().get(), view.data, size_of(view));
            view.data = memory.back().get();
            return view;
        };
        OpCall there = call;
        for (TensorView& view : there.in) view = on_device(view);
        for (TensorView& view : there.out) view = on_device(view);
        const size_t scratch_size = backend.scratch_bytes(node);
        memory.push_back(backend.alloc(scratch_size + 1));
        std::byte guard = kGuard;
        backend.upload(memory.back().get() + scratch_size, &guard, 1);
        there.scratch = memory.back().get();
        const auto status_memory = alloc_host("test", sizeof(CallStatus));
        const auto reached = backend.reach({status_memory.get(), sizeof(CallStatus)});
        there.status = new (status_memory.get()) CallStatus;
        OneSegment source({&there});
        backend.run(source);
        for (size_t i = 0; i < call.out.size(); ++i)
            backend.download(call.out[i].data, there.out[i].data, size_of(call.out[i]));
        backend.download(&guard, there.scratch + scratch_size, 1);
        EXPECT_EQ(guard, kGuard) << name(node.op) << " wrote past its scratch of " << scratch_size << " bytes";
        if (!there.status->ok()) call.status->report(there.status->fault(), there.status->row());
    }

    template <class F>
    Result run(F f) const {
        const Node& node = graph.nodes().back();
        std::deque<Array> copies;
        CallStatus status;
        OpCall call{.op = node.op, .params = &node.params, .in = {}, .out = {}, .scratch = nullptr, .status = &status};
        for (Tensor t : node.inputs) {
            copies.push_back(*array_of_.at(&t.storage().info()));
            call.in.push_back(copies.back().view());
        }
        for (Tensor t : node.outputs) {
            copies.emplace_back(t.dtype(), t.shape());
            for (std::byte& b : copies.back().bytes) b = std::byte{0xff};
            call.out.push_back(copies.back().view());
        }
        if (node.op == Op::CacheAppend && call.out.empty()) call.out.push_back(call.in[0]);
        f(call, node);
        Result result{{}, status.fault(), status.row()};
        for (const TensorView& out : call.out) {
            const auto size = static_cast<size_t>(storage_bytes(out.dtype, out.shape));
            result.outputs.emplace_back(out.data, out.data + size);
        }
        return result;
    }
};

inline void expect_same(const OpCase::Result& expected, const OpCase::Result& got, const std::string& what) {
    EXPECT_EQ(describe(expected.fault), describe(got.fault)) << what;
    EXPECT_EQ(expected.row, got.row) << what;
    ASSERT_EQ(expected.outputs.size(), got.outputs.size()) << what;
    for (size_t i = 0; i < expected.outputs.size(); ++i) {
        if (expected.outputs[i] == got.outputs[i]) continue;
        size_t at = 0;
        while (expected.outputs[i][at] == got.outputs[i][at]) ++at;
        float want = 0, have = 0;
        std::memcpy(&want, &expected.outputs[i][at / 4 * 4], 4);
        std::memcpy(&have, &got.outputs[i][at / 4 * 4], 4);
        ADD_FAILURE() << what << ": output " << i << " differs from byte " << at << " on (as float32: " << want
                      << " expected, " << have << " found)";
    }
}

/// Float outputs that were added in another order: n terms a sum. Rounding errors of n additions wander like a random
/// walk; eight standard deviations of it, relative to the largest result.
inline void expect_near(const OpCase::Result& expected, const OpCase::Result& got, int64_t n, const std::string& what) {
    EXPECT_EQ(describe(expected.fault), describe(got.fault)) << what;
    EXPECT_EQ(expected.row, got.row) << what;
    ASSERT_EQ(expected.outputs.size(), got.outputs.size()) << what;
    for (size_t i = 0; i < expected.outputs.size(); ++i) {
        const auto* want = reinterpret_cast<const float*>(expected.outputs[i].data());
        const auto* have = reinterpret_cast<const float*>(got.outputs[i].data());
        const size_t count = expected.outputs[i].size() / sizeof(float);
        float largest = 0.0f;
        for (size_t k = 0; k < count; ++k) largest = std::max(largest, std::isfinite(want[k]) ? std::fabs(want[k]) : 0);
        const float tolerance = 8.0f * std::sqrt(static_cast<float>(n) + 8.0f) * 0x1p-24f * largest;
        for (size_t k = 0; k < count; ++k) {
            if (std::isnan(want[k]) && std::isnan(have[k])) continue;
            if (std::fabs(want[k] - have[k]) <= tolerance) continue;
            ADD_FAILURE() << what << ": output " << i << " value " << k << ": " << want[k] << " expected, " << have[k]
                          << " found, tolerance " << tolerance;
            break;
        }
    }
}

}  // namespace ggmlx::test
