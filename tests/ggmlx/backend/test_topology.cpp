// The default number of threads, on faked /sys trees.

#include "ggmlx/backend/cpu/topology.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>

namespace ggmlx {
namespace {

namespace fs = std::filesystem;

/// A /sys tree in a temporary folder.
class FakeSys : public testing::Test {
  protected:
    fs::path root = fs::path(testing::TempDir()) /
                    (std::string("sys_") + testing::UnitTest::GetInstance()->current_test_info()->name());

    void SetUp() override { fs::remove_all(root); }
    void TearDown() override { fs::remove_all(root); }

    void write(const std::string& path, const std::string& text) const {
        fs::create_directories((root / path).parent_path());
        std::ofstream(root / path) << text << "\n";
    }
    void siblings(int cpu, const std::string& list, const std::string& file = "core_cpus_list") const {
        write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/" + file, list);
    }
    ThreadChoice choose(const std::vector<int>& allowed, int usable) const {
        return choose_threads(root.string(), allowed, usable);
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

TEST(CpuList, IsReadAsTheKernelWritesIt) {
    EXPECT_EQ(parse_cpu_list("0-3,8,10-11"), (std::vector<int>{0, 1, 2, 3, 8, 10, 11}));
    EXPECT_EQ(parse_cpu_list(""), std::vector<int>{});
    EXPECT_EQ(parse_cpu_list("5"), std::vector<int>{5});
    EXPECT_EQ(parse_cpu_list("x,2"), std::vector<int>{2});
}

TEST(AllowedCpus, AreSome) { EXPECT_FALSE(allowed_cpus().empty()); }

}  // namespace
}  // namespace ggmlx
