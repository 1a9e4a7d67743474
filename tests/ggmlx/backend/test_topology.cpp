// The default number of threads and their processors, on faked /sys trees.

#include "ggmlx/backend/cpu/topology.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "tests/ggmlx/fake_root.h"

namespace ggmlx {
namespace {

class FakeSys : public FakeRoot {
  protected:
    ThreadChoice choose(const std::vector<int>& allowed, int usable, const ThreadWish& wish = {}) const {
        return choose_threads(root(), allowed, usable, wish);
    }
};

std::vector<int> first_cpus(int n) {
    std::vector<int> cpus(static_cast<size_t>(n));
    std::iota(cpus.begin(), cpus.end(), 0);
    return cpus;
}

TEST_F(FakeSys, OneThreadPerCoreOfAnSmtProcessor) {
    for (int cpu = 0; cpu < 32; ++cpu) siblings(cpu, std::to_string(cpu % 16) + "," + std::to_string(cpu % 16 + 16));
    EXPECT_EQ(choose(first_cpus(32), 32).n_threads, 16);
    EXPECT_EQ(choose(first_cpus(32), 32).reason, "16 physical cores");
}

TEST_F(FakeSys, AllCoresOfTwoSockets) {
    for (int cpu = 0; cpu < 56; ++cpu) siblings(cpu, std::to_string(cpu), "thread_siblings_list");
    EXPECT_EQ(choose(first_cpus(56), 56).n_threads, 56);
}

TEST_F(FakeSys, PerformanceCoresOnlyOfAHybridProcessor) {
    for (int cpu = 0; cpu < 20; ++cpu) siblings(cpu, std::to_string(cpu));
    write("sys/devices/cpu_core/cpus", "0-7");
    write("sys/devices/cpu_atom/cpus", "8-19");
    EXPECT_EQ(choose(first_cpus(20), 20).n_threads, 8);
    EXPECT_EQ(choose(first_cpus(20), 20).reason, "8 performance cores");
    // Someone who gave it the efficiency cores alone means them.
    EXPECT_EQ(choose({8, 9, 10}, 3).n_threads, 3);
}

TEST_F(FakeSys, TheQuotaIsALimit) {
    for (int cpu = 0; cpu < 96; ++cpu) siblings(cpu, std::to_string(cpu % 48) + "," + std::to_string(cpu % 48 + 48));
    const ThreadChoice choice = choose(first_cpus(96), 7);
    EXPECT_EQ(choice.n_threads, 7);
    EXPECT_EQ(choice.reason, "a cgroup quota of 7 processors");
}

TEST_F(FakeSys, TheAffinityMaskIsALimit) {
    for (int cpu = 0; cpu < 8; ++cpu) siblings(cpu, std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4));
    EXPECT_EQ(choose({0, 4}, 2).n_threads, 1);  // two siblings of one core
    EXPECT_EQ(choose({1, 2, 5}, 3).n_threads, 2);
}

TEST_F(FakeSys, WithoutInformationEveryProcessorIsACore) {
    EXPECT_EQ(choose(first_cpus(6), 6).n_threads, 6);
    EXPECT_EQ(choose({}, 1).n_threads, 1);
}

TEST_F(FakeSys, ATeamThatTakesAllCoresIsPinnedToThem) {
    for (int cpu = 0; cpu < 8; ++cpu) siblings(cpu, std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4));
    EXPECT_EQ(choose(first_cpus(8), 8).cpus, first_cpus(4));
    EXPECT_EQ(choose({2, 5, 6, 7}, 4).cpus, (std::vector<int>{2, 5, 7}));
    EXPECT_EQ(choose(first_cpus(8), 8, {.n_threads = 4}).cpus, first_cpus(4));
}

TEST_F(FakeSys, WhoDoesNotTakeAllCoresIsNotPinned) {
    for (int cpu = 0; cpu < 8; ++cpu) siblings(cpu, std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4));
    EXPECT_TRUE(choose(first_cpus(8), 8, {.n_threads = 2}).cpus.empty()) << "another program may pin to the same";
    EXPECT_TRUE(choose(first_cpus(8), 8, {.n_threads = 5}).cpus.empty()) << "more threads than cores";
    EXPECT_TRUE(choose(first_cpus(8), 3).cpus.empty()) << "a quota is handed out on any processor";
    EXPECT_TRUE(choose(first_cpus(8), 8, {.pin = false}).cpus.empty());
}

TEST_F(FakeSys, AReservedCoreIsLeftFree) {
    const ThreadChoice choice = choose(first_cpus(8), 8, {.n_reserved = 1});
    EXPECT_EQ(choice.n_threads, 7);
    EXPECT_EQ(choice.cpus, first_cpus(7));
    EXPECT_EQ(choice.reason, "8 physical cores, one left to the GPU");
    EXPECT_EQ(choose(first_cpus(1), 1, {.n_reserved = 1}).n_threads, 1);
    EXPECT_EQ(choose(first_cpus(8), 4, {.n_reserved = 1}).n_threads, 3);
    EXPECT_EQ(choose(first_cpus(8), 8, {.n_threads = 8, .n_reserved = 1}).n_threads, 8) << "a number asked for holds";
}

TEST_F(FakeSys, SpreadThreadsComeFromAllNodesInTurn) {
    node(0, "0-3", 1024);
    node(1, "4-7", 1024);
    node(2, "", 1024);
    EXPECT_EQ(choose(first_cpus(8), 8, {.n_threads = 3, .spread = true}).cpus, (std::vector<int>{0, 4, 1}));
    EXPECT_EQ(choose(first_cpus(9), 9, {.spread = true}).cpus, (std::vector<int>{0, 4, 1, 5, 2, 6, 3, 7, 8}));
    EXPECT_EQ(choose({0, 1, 2, 7}, 4, {.spread = true}).cpus, (std::vector<int>{0, 7, 1, 2}));
    EXPECT_TRUE(choose(first_cpus(8), 8, {.n_threads = 9, .spread = true}).cpus.empty());
}

TEST_F(FakeSys, NodesMayLackProcessorsOrMemory) {
    EXPECT_TRUE(memory_nodes(root()).empty());
    node(10, "", 64);
    node(0, "0-1", 128);
    node(2, "2,3", 0);
    write("sys/devices/system/node/node_x/cpulist", "5");
    write("sys/devices/system/node/possible", "0-10");
    EXPECT_EQ(
        memory_nodes(root()),
        (std::vector<MemoryNode>{{0, {0, 1}, uint64_t{128} << 20}, {2, {2, 3}, 0}, {10, {}, uint64_t{64} << 20}}));
}

TEST(Pinning, HoldsAThreadAndLetsItGo) {
    std::thread([] {
        const std::vector<int> all = allowed_cpus();
        const Pins pinned({all.back()}), unpinned({});
        pinned.enter(0);
        EXPECT_EQ(allowed_cpus(), std::vector<int>{all.back()});
        unpinned.enter(0);
        EXPECT_EQ(allowed_cpus(), all);
        {
            const AffinityKept kept;
            pinned.enter(0);
            pinned.enter(1);  // beyond the list: as without pins
            EXPECT_EQ(allowed_cpus(), all);
            pinned.enter(0);
        }
        EXPECT_EQ(allowed_cpus(), all);
    }).join();
}

TEST(Pinning, OfAProcessorThatDoesNotExistChangesNothing) {
    std::thread([] {
        const std::vector<int> all = allowed_cpus();
        EXPECT_FALSE(pin_this_thread(-1));
        EXPECT_FALSE(pin_this_thread(1 << 20));
        EXPECT_EQ(allowed_cpus(), all);
    }).join();
}

TEST(CpuList, IsReadAsTheKernelWritesIt) {
    EXPECT_EQ(parse_cpu_list("0-3,8,10-11"), (std::vector<int>{0, 1, 2, 3, 8, 10, 11}));
    EXPECT_EQ(parse_cpu_list(""), std::vector<int>{});
    EXPECT_EQ(parse_cpu_list("5"), std::vector<int>{5});
    EXPECT_EQ(parse_cpu_list("x,2"), std::vector<int>{2});
}

TEST(AllowedCpus, AreSome) { EXPECT_FALSE(allowed_cpus().empty()); }

}  // namespace
}  // namespace ggmlx
