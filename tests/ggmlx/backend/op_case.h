#pragma once
// One op with its bytes, run by the reference and by backends on the same inputs. Results are compared byte for byte.

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ggmlx/backend/backend.h"
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

}  // namespace ggmlx::test
