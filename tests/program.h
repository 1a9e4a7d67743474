#pragma once
// Runs the built program as a user would, through a shell.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

struct ProgramRun {
    int exit_code = -1;  ///< -1: ended by a signal
    std::string out, err;
};

inline std::string shell_quoted(const std::string& text) {
    std::string quoted = "'";
    for (char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
    return quoted + "'";
}

/// before: shell text ahead of the command, such as "ulimit -f 64;" or "GGMLX_THREADS=2".
inline ProgramRun run_ggmlx(const std::vector<std::string>& arguments, const std::string& before = "") {
    const auto stem = std::filesystem::path(testing::TempDir()) / ("ggmlx-run-" + std::to_string(::getpid()));
    std::string command = before + " " + shell_quoted(GGMLX_PROGRAM);
    for (const std::string& argument : arguments) command += " " + shell_quoted(argument);
    command += " </dev/null >" + shell_quoted(stem.string() + ".out") + " 2>" + shell_quoted(stem.string() + ".err");
    const int status = std::system(command.c_str());
    auto take = [&](const char* ending) {
        std::ifstream file(stem.string() + ending, std::ios::binary);
        std::string text{std::istreambuf_iterator<char>(file), {}};
        std::filesystem::remove(stem.string() + ending);
        return text;
    };
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, take(".out"), take(".err")};
}
