// A conversion that is killed or meets a full disk leaves nothing under the model's name, and the next one succeeds.
// These tests run the real program.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "ggmlx/file/reader.h"
#include "tests/convert/synthetic.h"
#include "tests/program.h"

namespace convert {
namespace {

namespace fs = std::filesystem;

/// About 5 million weights: enough work for q6_k to be interrupted in it.
void write_large_checkpoint(const TempFolder& folder) {
    MadeCheckpoint made;
    made.config["vocab_size"] = 16000;
    made.config["hidden_size"] = 256;
    made.fill();
    made.write(folder.path());
}

pid_t start(const std::vector<std::string>& arguments) {
    std::vector<char*> argv = {const_cast<char*>(GGMLX_PROGRAM)};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        const int null = open("/dev/null", O_WRONLY);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        execv(GGMLX_PROGRAM, argv.data());
        _exit(127);
    }
    return child;
}

/// True once the child has begun to write; false if it ended before.
bool wait_for_partial(pid_t child, const std::string& partial) {
    while (!fs::exists(partial)) {
        if (waitpid(child, nullptr, WNOHANG) == child) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

TEST(Interruption, KilledConversionsLeaveNoModel) {
    TempFolder folder;
    write_large_checkpoint(folder);
    const std::string output = folder / "model.ggmx", partial = output + ".partial";
    int n_killed = 0;
    for (const int delay_ms : {0, 20, 60, 150, 400, 1000}) {
        const pid_t child = start({"convert", folder.path(), "-o", output, "--type", "q6_k", "-t", "1"});
        ASSERT_TRUE(wait_for_partial(child, partial)) << "the conversion ended before it wrote anything";
        std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
        kill(child, SIGKILL);
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        if (!WIFSIGNALED(status)) {  // it was faster than the signal: then the model is whole
            ASSERT_EQ(WEXITSTATUS(status), 0);
            EXPECT_NO_THROW(ggmlx::ModelFile::open(output));
            fs::remove(output);
            continue;
        }
        ++n_killed;
        EXPECT_FALSE(fs::exists(output)) << "killed after " << delay_ms << " ms";
        if (fs::exists(partial)) {
            EXPECT_THROW(ggmlx::ModelFile::open(partial), ggmlx::Error);
        }
    }
    EXPECT_GE(n_killed, 1);
    const ProgramRun again = run_ggmlx({"convert", folder.path(), "-o", output, "--type", "q6_k"});
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_FALSE(fs::exists(partial));
    EXPECT_EQ(run_ggmlx({"verify", output}).exit_code, 0);
}

TEST(Interruption, AFileSizeLimitIsReportedAndCleanedUp) {
    TempFolder folder;
    write_large_checkpoint(folder);
    const std::string output = folder / "model.ggmx";
    const ProgramRun run = run_ggmlx({"convert", folder.path(), "-o", output}, "ulimit -f 1024;");
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_CONTAINS(run.err, "error: ");
    EXPECT_CONTAINS(run.err, "model.ggmx");
    EXPECT_FALSE(fs::exists(output));
    EXPECT_FALSE(fs::exists(output + ".partial"));
}

TEST(Interruption, AFullDiskIsReportedBeforeAnythingIsWritten) {
    TempFolder folder;
    MadeCheckpoint made;
    made.config["vocab_size"] = 2000000000;  // 512 GB of embedding
    made.write(folder.path());
    // The weights are as config.json says in shape alone: a sparse file holds them.
    const uint64_t n_embedding = uint64_t{2000000000} * 64 * 4;
    nlohmann::ordered_json header;
    uint64_t offset = 0;
    for (auto tensor : made.tensors) {
        if (tensor.name == "model.embed_tokens.weight") tensor.shape[0] = 2000000000;
        const uint64_t n = tensor.name == "model.embed_tokens.weight" ? n_embedding : tensor.bytes.size();
        header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + n}}};
        offset += n;
    }
    const std::string bytes = raw_safetensors(header.dump(), "");
    write_file(folder / "model.safetensors", bytes);
    std::error_code error;
    fs::resize_file(folder / "model.safetensors", bytes.size() + offset, error);
    if (error) GTEST_SKIP() << "this file system has no sparse file of 512 GB: " << error.message();
    if (fs::space(folder.path()).available > n_embedding) GTEST_SKIP() << "more than 512 GB are free here";
    const std::string output = folder / "model.ggmx";
    const ProgramRun run = run_ggmlx({"convert", folder.path(), "-o", output});
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_CONTAINS(run.err, "free");
    EXPECT_CONTAINS(run.err, std::to_string(n_embedding).substr(0, 3));
    EXPECT_FALSE(fs::exists(output));
    EXPECT_FALSE(fs::exists(output + ".partial"));
}

}  // namespace
}  // namespace convert
