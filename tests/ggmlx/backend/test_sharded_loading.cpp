// Weights that a device deals out to memory nodes: from a file, compressed or not, and from memory; damage is noticed.

#include <gtest/gtest.h>

#include <cstring>

#include "ggmlx/backend/cpu/cpu_backend.h"
#include "ggmlx/backend/reference_backend.h"
#include "ggmlx/backend/weights.h"
#include "ggmlx/core/error.h"
#include "ggmlx/graph/ops.h"
#include "tests/ggmlx/file/sample_model.h"

namespace ggmlx {
namespace {

using namespace test;

constexpr int64_t kSlices = 5, kIn = 40, kFf = 150;
constexpr int kNodes = 4;

std::vector<TensorToWrite> expert_tensors() {
    return {{"norm", DType::F32, Role::Norm, {kIn}},
            {"gate_exps.weight", DType::Q4_0, Role::Expert, {kSlices, kFf, kIn}},
            {"gate_exps.bias", DType::F32, Role::Expert, {kSlices, kFf}},
            {"up_exps.weight", DType::MXFP4, Role::Expert, {kSlices, kFf, kIn}},
            {"up_exps.bias", DType::F32, Role::Expert, {kSlices, kFf}},
            {"down_exps.weight", DType::Q8_0, Role::Expert, {kSlices, kIn, kFf}},
            {"down_exps.bias", DType::F32, Role::Expert, {kSlices, kIn}}};
}

/// The model of one mixture on a cpu that deals experts out, and ref0. The parameter: compressed.
class ShardedLoading : public testing::TestWithParam<bool> {
  protected:
    std::string path_ = fresh_path("experts.ggmx");
    TensorSet set_;
    Graph graph_;
    std::unique_ptr<Backend> ref_ = make_reference_backend("ref0");
    std::unique_ptr<Backend> cpu_ = make_cpu_backend(
        {.n_threads = 1, .pin = false}, {NumaPolicy::Shard, std::vector<int>(kNodes, 0), "a test", kNodes});

    void SetUp() override {
        write_model(path_, sample_documents(), expert_tensors(), GetParam());
        const ModelFile file = ModelFile::open(path_);
        for (const StoredTensor& t : file.tensors()) set_.add(t.name, t.dtype, t.shape, t.role);
        const ExpertWeights w{.gate = set_.get("gate_exps.weight"),
                              .up = set_.get("up_exps.weight"),
                              .down = set_.get("down_exps.weight"),
                              .gate_bias = set_.get("gate_exps.bias"),
                              .up_bias = set_.get("up_exps.bias"),
                              .down_bias = set_.get("down_exps.bias")};
        experts(graph_, w, graph_.input("x", DType::F32, {1, kIn}), graph_.input("ids", DType::I32, {1, 2}),
                graph_.input("weights", DType::F32, {1, 2}));
    }
    void TearDown() override { std::remove(path_.c_str()); }

    std::unique_ptr<DeviceWeights> weights(const std::string& rules) {
        const std::vector<std::string> names = {"cpu", "ref0"};
        const auto parsed = rules.empty() ? std::vector<PlacementRule>{} : parse_rules(rules);
        auto result = std::make_unique<DeviceWeights>(set_, place(set_, parsed, names, 0),
                                                      std::vector<Backend*>{cpu_.get(), ref_.get()});
        EXPECT_EQ(result->deal_out_experts(graph_), "");
        return result;
    }
    void expect_dealt_out(const ModelFile& file, const DeviceWeights& weights) {
        for (const char* name :
             {"gate_exps.weight", "gate_exps.bias", "up_exps.weight", "up_exps.bias", "down_exps.weight"})
            expect_dealt_out(file, weights, set_.get(name));
        EXPECT_EQ(weights.view(set_.get("down_exps.bias"), 0).n_shards, 1) << "added once, to the sum";
        EXPECT_EQ(weights.view(set_.get("norm"), 0).n_shards, 1);
    }

  private:
    /// Every expert that is on the cpu, cut from the file's bytes.
    void expect_dealt_out(const ModelFile& file, const DeviceWeights& weights, Tensor tensor) {
        const StoredTensor& stored = *file.find(tensor.name());
        std::vector<std::byte> raw(stored.raw_bytes);
        file.read(stored, raw);
        const TensorView view = weights.view(tensor, 0);
        ASSERT_EQ(view.n_shards, kNodes) << tensor.name();
        const bool is_bias = tensor.shape().rank() == 2, by_columns = is_bias || tensor.dim(-1) == kFf;
        const ShardedMatrix matrix{tensor.dtype(), is_bias ? 1 : tensor.dim(1), tensor.dim(-1),
                                   by_columns ? ShardAxis::Columns : ShardAxis::Rows, kNodes};
        for (int64_t e = 0; e < kSlices; ++e) {
            const int64_t slot = weights.slot_table(tensor, 0)[static_cast<size_t>(e)];
            for (int shard = 0; shard < kNodes && slot >= 0; ++shard) {
                std::vector<std::byte> cut(static_cast<size_t>(matrix.shard_bytes(shard)));
                cut_shard(matrix, shard, raw.data() + static_cast<size_t>(e) * stored.expert_stride, cut.data());
                EXPECT_EQ(std::memcmp(view.data + shard * view.shard_stride + slot * view.slot_stride, cut.data(),
                                      cut.size()),
                          0)
                    << tensor.name() << " expert " << e << " shard " << shard;
            }
        }
    }
};

TEST_P(ShardedLoading, EveryShardHasItsPartOfTheFile) {
    const ModelFile file = ModelFile::open(path_);
    for (const char* rules : {"", "exps@1-2=ref0"}) {
        SCOPED_TRACE(rules);
        uint64_t last = 0, total = 1;
        const auto loaded = weights(rules);
        loaded->load(file, {.resident = true, .progress = [&](uint64_t done, uint64_t all) {
                                EXPECT_LE(done, all);
                                last = done;
                                total = all;
                            }});
        EXPECT_EQ(last, total);
        expect_dealt_out(file, *loaded);
        EXPECT_EQ(loaded->host_weights().mapped_bytes, 0u);
    }
}

TEST_P(ShardedLoading, BytesInMemoryAreDealtOutAsWell) {
    const ModelFile file = ModelFile::open(path_);
    std::vector<std::byte> packed;
    const auto loaded = weights("");
    loaded->load([&](Tensor t) -> std::span<const std::byte> {
        const StoredTensor& stored = *file.find(t.name());
        packed.resize(stored.raw_bytes);
        file.read(stored, packed);  // small slices have no gaps
        return packed;
    });
    expect_dealt_out(file, *loaded);
}

TEST_P(ShardedLoading, WhatIsReadInPlaceStaysWhole) {
    const ModelFile file = ModelFile::open(path_);
    const auto loaded = weights("");
    loaded->load(file, {.resident = false});
    EXPECT_EQ(loaded->view(set_.get("down_exps.weight"), 0).n_shards, 1);
    EXPECT_EQ(loaded->host_weights().sharded_bytes, 0u);
}

TEST_P(ShardedLoading, DamageIsNoticed) {
    for (const char* name : {"up_exps.weight", "gate_exps.bias"}) {
        auto bytes = read_bytes(path_);
        const StoredTensor tensor = *ModelFile::open(path_).find(name);
        bytes[tensor.offset + tensor.stored_bytes / 2] ^= std::byte{0x10};
        const std::string damaged = fresh_path("damaged.ggmx");
        write_bytes(damaged, bytes);
        const ModelFile file = ModelFile::open(damaged);
        try {
            weights("")->load(file, {.resident = true});
            ADD_FAILURE() << name;
        } catch (const Error& e) {
            EXPECT_EQ(e.kind(), ErrorKind::CorruptFile);
            EXPECT_NE(std::string(e.what()).find(name), std::string::npos) << e.what();
        }
        std::remove(damaged.c_str());
    }
}

/// The same on the nodes of this machine, if it has several.
class RealNodesLoading : public ShardedLoading {
  protected:
    NumaPlan plan_ = plan_numa(NumaPolicy::Shard, "", allowed_cpus(), can_bind_memory());

    void SetUp() override {
        if (plan_.policy == NumaPolicy::Off) GTEST_SKIP() << "memory cannot be bound here: " << plan_.reason;
        cpu_ = make_cpu_backend({.n_threads = 2}, plan_);
        ShardedLoading::SetUp();
    }
};

TEST_P(RealNodesLoading, EveryShardLiesOnItsNode) {
    const ModelFile file = ModelFile::open(path_);
    const auto loaded = weights("");
    loaded->load(file, {.resident = true});
    for (const char* name : {"gate_exps.weight", "gate_exps.bias", "up_exps.weight", "down_exps.weight"}) {
        const TensorView view = loaded->view(set_.get(name), 0);
        ASSERT_EQ(view.n_shards, plan_.n_shards);
        for (int shard = 0; shard < view.n_shards; ++shard)
            for (int64_t slot = 0; slot < kSlices; ++slot)
                EXPECT_EQ(node_of_page(view.data + shard * view.shard_stride + slot * view.slot_stride),
                          plan_.nodes[static_cast<size_t>(shard)])
                    << name << " slot " << slot;
    }
}

INSTANTIATE_TEST_SUITE_P(File, RealNodesLoading, testing::Bool(),
                         [](const auto& test) { return test.param ? "compressed" : "raw"; });

INSTANTIATE_TEST_SUITE_P(File, ShardedLoading, testing::Bool(),
                         [](const auto& test) { return test.param ? "compressed" : "raw"; });

}  // namespace
}  // namespace ggmlx
