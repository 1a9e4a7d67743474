#pragma once
// A folder that stands for "/", with the files of /sys and /proc that a test writes into it.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace ggmlx {

class FakeRoot : public testing::Test {
  protected:
    void SetUp() override { std::filesystem::remove_all(root_); }
    void TearDown() override { std::filesystem::remove_all(root_); }

    std::string root() const { return root_.string(); }
    void write(const std::string& path, const std::string& text) const {
        std::filesystem::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path) << text << "\n";
    }
    /// Processor `cpu` shares a core with those of `list`.
    void siblings(int cpu, const std::string& list, const std::string& file = "core_cpus_list") const {
        write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/" + file, list);
    }
    /// Node `id` has these processors and so many MiB of memory.
    void node(int id, const std::string& cpus, uint64_t mib) const {
        const std::string folder = "sys/devices/system/node/node" + std::to_string(id);
        write(folder + "/cpulist", cpus);
        write(folder + "/meminfo", "Node " + std::to_string(id) + " MemTotal:       " + std::to_string(mib << 10) +
                                       " kB\nNode " + std::to_string(id) + " MemFree: 17 kB");
    }

  private:
    std::filesystem::path root_ =
        std::filesystem::path(testing::TempDir()) /
        (std::string("root_") + testing::UnitTest::GetInstance()->current_test_info()->test_suite_name() + "_" +
         testing::UnitTest::GetInstance()->current_test_info()->name());
};

}  // namespace ggmlx
