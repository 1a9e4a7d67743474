// The writer: what it refuses before writing, and that nothing but a complete file ever has the final name.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "ggmlx/core/error.h"
#include "ggmlx/core/parallel.h"
#include "ggmlx/file/reader.h"
#include "ggmlx/file/sample_model.h"

namespace ggmlx {
namespace {

using test::exists;
using test::fresh_path;
using test::has;

std::string message_of(const std::function<void()>& action, ErrorKind kind) {
    try {
        action();
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), kind) << e.what();
        return e.what();
    }
    return "no error";
}

TensorToWrite matrix(const std::string& name, int64_t n_out, int64_t n_in) {
    return {name, DType::F32, Role::Dense, {n_out, n_in}};
}

/// Exit status of a child process that runs `action`, or minus the signal that ended it.
int in_child(const std::function<int()>& action) {
    const pid_t child = fork();
    if (child == 0) _exit(action());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(Writer, PublishesOnlyWhenFinished) {
    const std::string path = fresh_path("publish.ggmx");
    {
        ModelWriter writer(path, {}, {matrix("a", 2, 2)});
        EXPECT_TRUE(exists(path + ".partial"));
        EXPECT_FALSE(exists(path));
        EXPECT_THROW(writer.finish(), Error);  // a slice is missing
        EXPECT_FALSE(exists(path));
    }
    EXPECT_FALSE(exists(path + ".partial"));
    test::write_model(path, {}, {matrix("a", 2, 2)}, false);
    EXPECT_FALSE(exists(path + ".partial"));
    const auto first = test::read_bytes(path);
    {
        ModelWriter writer(path, {}, {matrix("b", 2, 2)});  // given up: the old file stays
    }
    EXPECT_EQ(test::read_bytes(path), first);
    test::write_model(path, {}, {matrix("b", 2, 2)}, false);
    EXPECT_NE(ModelFile::open(path).find("b"), nullptr);
    std::filesystem::remove(path);
}

TEST(Writer, KnowsTheSizeBeforehandAndTakesSlicesInAnyOrder) {
    const auto tensors = test::sample_tensors();
    const auto documents = test::sample_documents();
    for (bool compress : {false, true}) {
        const std::string path = fresh_path("order.ggmx");
        ModelWriter writer(path, documents, tensors, compress);
        if (!compress) {
            EXPECT_EQ(writer.total_bytes(), planned_file_size(documents, tensors));
        }
        std::vector<std::pair<size_t, int64_t>> slices;
        for (size_t t = tensors.size(); t-- > 0;)
            for (int64_t i = writer.n_slices(t); i-- > 0;) slices.emplace_back(t, i);
        parallel_for(static_cast<int64_t>(slices.size()), 3, [&](int64_t k) {
            const auto [t, i] = slices[static_cast<size_t>(k)];
            const auto size =
                static_cast<size_t>(storage_bytes(tensors[t].dtype, tensors[t].shape) / writer.n_slices(t));
            writer.write_slice(
                t, i, test::sample_slice(tensors[t], size, static_cast<unsigned>(1000 * t) + static_cast<unsigned>(i)));
        });
        writer.finish();
        const auto bytes = test::read_bytes(path);
        EXPECT_LE(bytes.size(), writer.total_bytes());
        if (!compress) {
            EXPECT_EQ(bytes.size(), writer.total_bytes());
        }
        EXPECT_EQ(bytes, test::sample_bytes(compress));
        std::filesystem::remove(path);
    }
}

TEST(Writer, RefusesBadDescriptions) {
    const std::string path = fresh_path("bad.ggmx");
    auto refused = [&](std::vector<DocumentToWrite> documents, std::vector<TensorToWrite> tensors) {
        return message_of([&] { ModelWriter(path, documents, tensors); }, ErrorKind::InvalidArgument);
    };
    EXPECT_TRUE(has(refused({}, {matrix("a", 1, 1), matrix("a", 1, 1)}), "two tensors are called a"));
    EXPECT_TRUE(has(refused({{"d", ""}, {"d", ""}}, {}), "two documents are called d"));
    EXPECT_TRUE(has(refused({{"a/b", ""}}, {}), "plain file name"));
    EXPECT_TRUE(has(refused({}, {matrix("", 1, 1)}), "printable UTF-8"));
    EXPECT_TRUE(has(refused({}, {matrix("a", 0, 1)}), "no extent may be 0"));
    EXPECT_TRUE(has(refused({}, {{"a", DType::F32, Role::Dense, {}}}), "at least one extent"));
    EXPECT_TRUE(has(refused({}, {{"a", DType::Q4_K, Role::Dense, {2, 100}}}), "multiple of 256"));
    EXPECT_TRUE(has(refused({}, {{"a", DType::Q8_0, Role::Norm, {32}}}), "needs a matrix"));
    EXPECT_TRUE(has(refused({}, {{"a", DType::F32, Role::Cache, {32}}}), "cache"));
    EXPECT_TRUE(has(refused({}, {{"a", DType::F32, Role::Expert, {2, 2, 2, 2}}}), "at most three extents"));
    EXPECT_TRUE(has(refused({}, {{"a", DType::Q8_0, Role::Expert, {2, 32}}}), "three extents"));
    EXPECT_TRUE(has(refused({}, {matrix("a", int64_t{1} << 40, int64_t{1} << 40)}), "larger than any machine"));
    EXPECT_FALSE(exists(path + ".partial"));
}

TEST(Writer, RefusesWrongSlices) {
    const std::string path = fresh_path("slices.ggmx");
    ModelWriter writer(path, {}, {matrix("a", 2, 2), {"e", DType::F32, Role::Expert, {2, 1, 1}}});
    const std::vector<std::byte> data(16);
    auto refused = [&](size_t t, int64_t slice, size_t size) {
        return message_of([&] { writer.write_slice(t, slice, std::span(data).first(size)); },
                          ErrorKind::InvalidArgument);
    };
    EXPECT_TRUE(has(refused(2, 0, 16), "no tensor 2"));
    EXPECT_TRUE(has(refused(0, 1, 16), "no slice 1"));
    EXPECT_TRUE(has(refused(1, -1, 4), "no slice -1"));
    EXPECT_TRUE(has(refused(0, 0, 15), "16 bytes, not 15"));
    EXPECT_EQ(refused(0, 0, 16), "no error");
    EXPECT_TRUE(has(refused(0, 0, 16), "written twice"));
    EXPECT_TRUE(has(message_of([&] { writer.finish(); }, ErrorKind::InvalidArgument), "tensor e: slice 0"));
}

TEST(Writer, RefusesPlacesItCannotWriteTo) {
    const std::string folder = fresh_path("folder");
    std::filesystem::create_directory(folder);
    auto refused = [](const std::string& path) {
        return message_of([&] { ModelWriter(path, {}, {}); }, ErrorKind::Io);
    };
    EXPECT_TRUE(has(refused(folder), "it is a folder"));
    EXPECT_TRUE(has(refused(folder + "/"), "it is a folder"));
    EXPECT_TRUE(has(refused(folder + "/absent/model.ggmx"), "No such file"));
    std::filesystem::create_directory(folder + "/taken.partial");
    EXPECT_TRUE(has(refused(folder + "/taken"), "taken.partial"));
    EXPECT_NE(refused("/proc/model.ggmx"), "no error");
    std::filesystem::remove_all(folder);
}

TEST(Writer, StatesNeededAndFreeSpaceBeforeWriting) {
    const std::string path = fresh_path("large.ggmx");
    const std::string message =
        message_of([&] { ModelWriter(path, {}, {matrix("a", int64_t{1} << 28, int64_t{1} << 26)}); }, ErrorKind::Io);
    const auto needed = planned_file_size({}, {matrix("a", int64_t{1} << 28, int64_t{1} << 26)});
    EXPECT_TRUE(has(message, "needs " + std::to_string(needed) + " bytes")) << message;
    EXPECT_TRUE(has(message, "are free")) << message;
    EXPECT_FALSE(exists(path + ".partial"));
}

TEST(Writer, TwoAtOnceUnderOneNameAreRefused) {
    const std::string path = fresh_path("race.ggmx");
    ModelWriter first(path, {}, {matrix("a", 2, 2)});
    EXPECT_TRUE(has(message_of([&] { ModelWriter(path, {}, {}); }, ErrorKind::Io), "another process is writing"));
    EXPECT_TRUE(exists(path + ".partial"));
    first.write_slice(0, 0, std::vector<std::byte>(16));
    first.finish();
    EXPECT_EQ(ModelFile::open(path).tensors().size(), 1u);
    std::filesystem::remove(path);
}

TEST(Writer, AKilledRunLeavesNothingUnderTheNameAndDoesNotBlockTheNext) {
    const std::string path = fresh_path("killed.ggmx");
    const std::vector<TensorToWrite> tensors = {{"e", DType::F32, Role::Expert, {100, 64, 64}}};
    for (int64_t killed_at : {1, 50, 99, 100}) {
        const int status = in_child([&] {
            ModelWriter writer(path, test::sample_documents(), tensors);
            for (int64_t i = 0; i < killed_at; ++i)
                writer.write_slice(0, i, test::sample_slice(tensors[0], 64 * 64 * 4, static_cast<unsigned>(i)));
            raise(SIGKILL);
            return 0;
        });
        EXPECT_EQ(status, -SIGKILL);
        EXPECT_FALSE(exists(path));
        ASSERT_TRUE(exists(path + ".partial"));
        EXPECT_THROW(ModelFile::open(path + ".partial"), Error);
        std::filesystem::rename(path + ".partial", path);  // even under another name it is no model
        EXPECT_THROW(ModelFile::open(path), Error);
        std::filesystem::rename(path, path + ".partial");
    }
    test::write_model(path, test::sample_documents(), tensors, false);
    EXPECT_EQ(ModelFile::open(path).tensors().size(), 1u);
    std::filesystem::remove(path);
}

TEST(Writer, AFileSizeLimitIsAnErrorThatLeavesNothing) {
    for (bool compress : {false, true}) {
        const std::string path = fresh_path("limit.ggmx");
        const int status = in_child([&] {
            const rlimit limit{1 << 20, 1 << 20};
            setrlimit(RLIMIT_FSIZE, &limit);
            try {
                test::write_model(path, {}, {matrix("small", 8, 8), matrix("large", 512, 1024)}, compress);
            } catch (const Error& e) {
                const std::string message = e.what();
                return e.kind() == ErrorKind::Io && has(message, path) && has(message, "File too large") ? 0 : 2;
            }
            return 1;
        });
        EXPECT_EQ(status, 0);  // -SIGXFSZ if the signal was not held back
        EXPECT_FALSE(exists(path));
        EXPECT_FALSE(exists(path + ".partial"));
    }
}

}  // namespace
}  // namespace ggmlx
