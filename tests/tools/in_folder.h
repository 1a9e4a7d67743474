#pragma once
// A test with a folder of its own for files, removed after it.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

class InFolder : public testing::Test {
  protected:
    void SetUp() override {
        const auto* test = testing::UnitTest::GetInstance()->current_test_info();
        folder_ = std::filesystem::path(testing::TempDir()) /
                  (std::string("ggmlx.") + test->name() + "." + std::to_string(getpid()));
        std::filesystem::create_directories(folder_);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    std::string path(const std::string& name) const { return (folder_ / name).string(); }
    std::filesystem::path folder_;
};
