// Quotas of control groups, on faked /proc and /sys trees.

#include "ggmlx/core/cgroup.h"

#include <gtest/gtest.h>

#include "tests/ggmlx/fake_root.h"

namespace ggmlx {
namespace {

class Cgroup : public FakeRoot {};

TEST_F(Cgroup, WithoutGroupsNothingIsLimited) {
    EXPECT_EQ(cgroup_cpu_quota(root()), std::nullopt);
    EXPECT_EQ(cgroup_free_memory(root()), std::nullopt);
}

TEST_F(Cgroup, AContainerSeesItsQuotaAtTheTop) {
    write("sys/fs/cgroup/cpu.max", "765000 100000");
    write("proc/self/cgroup", "0::/");
    EXPECT_EQ(cgroup_cpu_quota(root()), 7);
    write("sys/fs/cgroup/cpu.max", "50000 100000");
    EXPECT_EQ(cgroup_cpu_quota(root()), 1);  // half a processor still runs one thread
    write("sys/fs/cgroup/cpu.max", "max 100000");
    EXPECT_EQ(cgroup_cpu_quota(root()), std::nullopt);
}

TEST_F(Cgroup, TheSmallestQuotaOnTheWayUpHolds) {
    write("proc/self/cgroup", "0::/system.slice/llm.service");
    write("sys/fs/cgroup/system.slice/llm.service/cpu.max", "1200000 100000");
    EXPECT_EQ(cgroup_cpu_quota(root()), 12);
    write("sys/fs/cgroup/system.slice/cpu.max", "400000 100000");
    EXPECT_EQ(cgroup_cpu_quota(root()), 4);
    write("sys/fs/cgroup/elsewhere/cpu.max", "100000 100000");
    EXPECT_EQ(cgroup_cpu_quota(root()), 4);
}

TEST_F(Cgroup, VersionOneHasAFolderPerController) {
    write("proc/self/cgroup", "7:memory:/box\n4:cpu,cpuacct:/box\n0::/init.scope");
    write("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "250000");
    write("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000");
    write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
    write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
    EXPECT_EQ(cgroup_cpu_quota(root()), 2);
    write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "1000");
    write("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "400");
    write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
    write("sys/fs/cgroup/memory/memory.usage_in_bytes", "5000");
    EXPECT_EQ(cgroup_free_memory(root()), 600u);
}

TEST_F(Cgroup, MemoryLeftIsThatOfTheTightestGroup) {
    write("proc/self/cgroup", "0::/a/b");
    write("sys/fs/cgroup/a/b/memory.max", "max");
    write("sys/fs/cgroup/a/b/memory.current", "10");
    EXPECT_EQ(cgroup_free_memory(root()), std::nullopt);
    write("sys/fs/cgroup/a/memory.max", "500");
    write("sys/fs/cgroup/a/memory.current", "510");
    EXPECT_EQ(cgroup_free_memory(root()), 0u);
}

}  // namespace
}  // namespace ggmlx
