// What a NUMA policy comes to: on faked trees for every kind of machine, and on the nodes of this one if it has several
// (scripts/check-numa boots one that has).

#include "ggmlx/backend/cpu/numa.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

#include "ggmlx/backend/cpu/cpu_backend.h"
#include "ggmlx/backend/cpu/threads.h"
#include "ggmlx/core/buffer.h"
#include "ggmlx/core/parallel.h"
#include "tests/ggmlx/fake_root.h"

namespace ggmlx {
namespace {

const std::vector<int> kEight = {0, 1, 2, 3, 4, 5, 6, 7};

class Numa : public FakeRoot {
  protected:
    NumaPlan plan(NumaPolicy policy = NumaPolicy::Interleave, const std::vector<int>& allowed = kEight) const {
        return plan_numa(policy, root(), allowed, true);
    }
    void two_nodes() const {
        node(0, "0-3", 1024);
        node(1, "4-7", 1024);
    }
};

TEST_F(Numa, AMachineWithoutNodesOrWithOneHasNothingToSpread) {
    EXPECT_EQ(plan().policy, NumaPolicy::Off);
    node(0, "0-7", 1024);
    EXPECT_EQ(plan().policy, NumaPolicy::Off);
    EXPECT_EQ(plan().reason, "one node");
}

TEST_F(Numa, TwoNodesShareTheMemory) {
    if (!has_libnuma()) GTEST_SKIP() << "this build has no libnuma";
    two_nodes();
    EXPECT_EQ(plan().policy, NumaPolicy::Interleave);
    EXPECT_EQ(plan().nodes, (std::vector<int>{0, 1}));
    EXPECT_EQ(plan().reason, "over 2 nodes");
}

TEST_F(Numa, OffOnTwoNodesSaysWhatWouldHelp) {
    two_nodes();
    EXPECT_EQ(plan(NumaPolicy::Off).policy, NumaPolicy::Off);
    EXPECT_EQ(plan(NumaPolicy::Off).reason, "2 nodes; --numa interleave or shard would use all of them");
}

TEST_F(Numa, NodesWithoutMemoryOrProcessorsTakeNoPart) {
    if (!has_libnuma()) GTEST_SKIP() << "this build has no libnuma";
    two_nodes();
    node(2, "", 65536);  // a card's memory
    node(3, "8-11", 0);  // a socket without modules
    EXPECT_EQ(plan(NumaPolicy::Interleave, {0, 4, 8}).nodes, (std::vector<int>{0, 1}));
    EXPECT_EQ(plan(NumaPolicy::Interleave, {4, 5}).policy, NumaPolicy::Off) << "the mask leaves one node";
}

TEST_F(Numa, ACpusetMayLeaveOneNode) {
    two_nodes();
    write("proc/self/status", "Name:\tx\nMems_allowed_list:\t1");
    EXPECT_EQ(plan().policy, NumaPolicy::Off);
    EXPECT_EQ(plan().reason, "one node");
}

TEST_F(Numa, WhatCannotBeHadIsSaid) {
    two_nodes();
    const NumaPlan refused = plan_numa(NumaPolicy::Interleave, root(), kEight, false);
    EXPECT_EQ(refused.policy, NumaPolicy::Off);
    EXPECT_NE(refused.reason.find("2 nodes, but this"), std::string::npos) << refused.reason;
    EXPECT_EQ(plan_numa(NumaPolicy::Shard, root(), kEight, false).n_shards, 1);
}

TEST_F(Numa, ShardsAreAPowerOfTwo) {
    if (!has_libnuma()) GTEST_SKIP() << "this build has no libnuma";
    two_nodes();
    EXPECT_EQ(plan(NumaPolicy::Shard).policy, NumaPolicy::Shard);
    EXPECT_EQ(plan(NumaPolicy::Shard).n_shards, 2);
    EXPECT_EQ(plan(NumaPolicy::Shard).reason, "over 2 nodes");
    EXPECT_EQ(plan(NumaPolicy::Interleave).n_shards, 1);
    EXPECT_EQ(plan(NumaPolicy::Shard, {4, 5}).policy, NumaPolicy::Off) << "the mask leaves one node";
    EXPECT_EQ(plan(NumaPolicy::Shard, {4, 5}).n_shards, 1);
    node(2, "8-9", 1024);
    const NumaPlan three = plan(NumaPolicy::Shard, {0, 4, 8});
    EXPECT_EQ(three.n_shards, 2);
    EXPECT_EQ(three.nodes, (std::vector<int>{0, 1, 2})) << "what is interleaved lies on all";
    EXPECT_EQ(three.reason, "over 2 of 3 nodes");
}

TEST_F(Numa, ThreadsWorkOnTheShardOfTheirNode) {
    if (!has_libnuma()) GTEST_SKIP() << "this build has no libnuma";
    two_nodes();
    node(2, "8-9", 1024);
    const NumaPlan shard = plan(NumaPolicy::Shard, {0, 1, 4, 8, 9});
    const auto shards = [&](std::vector<int> cpus, int n_threads) {
        return shards_of_threads(shard, {n_threads, "", std::move(cpus)}, root());
    };
    EXPECT_EQ(shards({4, 0, 1}, 3), (std::vector<int>{1, 0, 0}));
    EXPECT_EQ(shards({0, 4, 8, 9}, 4), (std::vector<int>{0, 1, 0, 1})) << "node 2 has no shard: it helps the others";
    EXPECT_EQ(shards({}, 3), (std::vector<int>{0, 1, 0})) << "not pinned";
    EXPECT_TRUE(shards_of_threads(plan(), {3, "", {}}, root()).empty());
}

TEST_F(Numa, ANodeCanGiveWhatIsFreeAndWhatFilesHold) {
    write("sys/devices/system/node/node1/meminfo",
          "Node 1 MemTotal: 100 kB\nNode 1 MemFree: 17 kB\nNode 1 Active(file): 3 kB\nNode 1 Inactive(file): 4 kB");
    EXPECT_EQ(free_bytes_of_node(root(), 1), uint64_t{24} << 10);
    EXPECT_EQ(free_bytes_of_node(root(), 7), std::numeric_limits<uint64_t>::max());
}

TEST_F(Numa, PoliciesHaveOneSpelling) {
    for (NumaPolicy policy : {NumaPolicy::Off, NumaPolicy::Interleave, NumaPolicy::Shard})
        EXPECT_EQ(numa_policy_from_name(name(policy)), policy);
    EXPECT_EQ(numa_policy_from_name("distribute"), std::nullopt);
}

/// Tests on the real nodes of a machine that has several.
class RealNodes : public testing::Test {
  protected:
    static constexpr size_t kBytes = size_t{32} << 20, kStep = size_t{2} << 20;
    NumaPlan plan_ = plan_numa(NumaPolicy::Interleave, "", allowed_cpus(), can_bind_memory());

    void SetUp() override {
        if (plan_.policy == NumaPolicy::Off) GTEST_SKIP() << "memory cannot be spread here: " << plan_.reason;
    }
    /// Bytes by node.
    static std::map<int, size_t> homes(const std::byte* data, size_t size) {
        std::map<int, size_t> bytes;
        for (size_t at = 0; at < size; at += 4096) bytes[node_of_page(data + at)] += 4096;
        return bytes;
    }
};

TEST_F(RealNodes, InterleavedMemoryLiesEvenlyOnAllNodes) {
    Buffer buffer(kBytes);
    ASSERT_TRUE(interleave_memory(buffer.data(), buffer.size(), plan_.nodes));
    std::memset(buffer.data(), 1, buffer.size());
    const auto bytes = homes(buffer.data(), buffer.size());
    EXPECT_EQ(bytes.size(), plan_.nodes.size());
    for (const auto& [node, size] : bytes) EXPECT_LE(size, kBytes / plan_.nodes.size() + kStep) << "node " << node;
}

TEST_F(RealNodes, BoundMemoryLiesOnItsNode) {
    for (int node : plan_.nodes) {
        Buffer buffer(kBytes);
        ASSERT_TRUE(bind_memory(buffer.data(), buffer.size(), node));
        std::memset(buffer.data(), 1, buffer.size());
        EXPECT_EQ(homes(buffer.data(), buffer.size()), (std::map<int, size_t>{{node, kBytes}}));
    }
}

TEST_F(RealNodes, TheCpuAllocatesAsItsPolicySays) {
    CpuOptions options;
    options.numa = NumaPolicy::Interleave;
    const auto cpu = make_cpu_backend(options);
    const auto memory = cpu->alloc(kBytes);
    std::memset(memory.get(), 1, kBytes);
    EXPECT_EQ(homes(memory.get(), kBytes).size(), plan_.nodes.size());
    EXPECT_NE(cpu->description().find("numa interleave (over "), std::string::npos) << cpu->description();
}

TEST_F(RealNodes, ShardsLieOnTheirNodes) {
    CpuOptions options;
    options.numa = NumaPolicy::Shard;
    const auto cpu = make_cpu_backend(options);
    ASSERT_EQ(cpu->n_shards(), static_cast<int>(plan_.nodes.size()));
    for (size_t size : {size_t{100}, size_t{5} << 20}) {
        const Backend::ShardedMemory memory = cpu->alloc_shards(size);
        std::memset(memory.data.get(), 1, static_cast<size_t>(cpu->n_shards() * memory.stride));
        for (int shard = 0; shard < cpu->n_shards(); ++shard)
            for (size_t at = 0; at < size; at += 4096)
                ASSERT_EQ(node_of_page(memory.data.get() + shard * memory.stride + at),
                          plan_.nodes[static_cast<size_t>(shard)])
                    << at;
    }
}

TEST_F(RealNodes, ThreadsAreOnAllNodes) {
    const ThreadChoice choice = choose_threads("", allowed_cpus(), usable_cpus(),
                                               {.n_threads = static_cast<int>(plan_.nodes.size()), .spread = true});
    ASSERT_EQ(choice.cpus.size(), plan_.nodes.size());
    const auto nodes = memory_nodes("");
    const auto node_of_cpu = [&](int cpu) {
        for (const MemoryNode& node : nodes)
            if (std::find(node.cpus.begin(), node.cpus.end(), cpu) != node.cpus.end()) return node.id;
        return -1;
    };
    const Pins pins(choice.cpus);
    const AffinityKept kept;
    Team team(choice.n_threads);
    std::vector<int> seen(choice.cpus.size());
    team.run([&](Member& member) {
        pins.enter(member.index());
        seen[static_cast<size_t>(member.index())] = node_of_cpu(sched_getcpu());
    });
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(seen, plan_.nodes);
}

}  // namespace
}  // namespace ggmlx
