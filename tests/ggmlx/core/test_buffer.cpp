// Memory, mapped files and the small thread helper.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <vector>

#include "ggmlx/core/buffer.h"
#include "ggmlx/core/error.h"
#include "ggmlx/core/parallel.h"

namespace ggmlx {
namespace {

TEST(Buffer, IsZeroedAndAligned) {
    for (size_t size : {size_t{1}, size_t{4097}, size_t{5} << 20}) {
        Buffer buffer(size);
        EXPECT_EQ(buffer.size(), size);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
        EXPECT_TRUE(std::all_of(buffer.data(), buffer.data() + size, [](std::byte b) { return b == std::byte{0}; }));
    }
    EXPECT_EQ(Buffer(0).size(), 0u);
}

TEST(Buffer, LargeOnesBeginWhereAHugePageCan) {
    std::vector<Buffer> buffers;
    for (size_t size : {size_t{4} << 20, (size_t{7} << 20) + 1, size_t{12} << 20})
        EXPECT_EQ(reinterpret_cast<uintptr_t>(buffers.emplace_back(size).data()) % (size_t{2} << 20), 0u) << size;
}

TEST(Buffer, SizesBeyondMemoryAreAnErrorThatNamesThem) {
    for (size_t size : {SIZE_MAX, SIZE_MAX - 4096, size_t{1} << 62}) {
        try {
            Buffer buffer(size);
            FAIL() << size;
        } catch (const Error& e) {
            EXPECT_EQ(e.kind(), ErrorKind::OutOfMemory);
            EXPECT_NE(std::string(e.what()).find(std::to_string(size)), std::string::npos);
        }
    }
}

TEST(MappedFile, ShowsTheBytesAndRefusesFoldersAndAbsentFiles) {
    const std::string path = testing::TempDir() + "mapped_file_test";
    std::ofstream(path, std::ios::binary) << "some bytes";
    {
        MappedFile file(path);
        file.will_need(0, 100);
        file.done_with(5, UINT64_MAX);
        EXPECT_EQ(std::string(reinterpret_cast<const char*>(file.bytes().data()), file.size()), "some bytes");
    }
    std::ofstream(path, std::ios::binary | std::ios::trunc).close();
    EXPECT_EQ(MappedFile(path).size(), 0u);
    std::remove(path.c_str());
    EXPECT_THROW(MappedFile{path}, Error);
    EXPECT_THROW(MappedFile{testing::TempDir()}, Error);
}

TEST(ParallelFor, CallsEveryIndexOnce) {
    for (int n_threads : {1, 2, 3, 0}) {
        std::vector<std::atomic<int>> calls(1000);
        parallel_for(1000, n_threads, [&](int64_t i) { ++calls[static_cast<size_t>(i)]; });
        for (const auto& count : calls) EXPECT_EQ(count, 1);
    }
    parallel_for(0, 4, [](int64_t) { FAIL(); });
}

TEST(ParallelFor, RethrowsAndStops) {
    std::atomic<int64_t> calls{0};
    EXPECT_THROW(parallel_for(int64_t{1} << 40, 3,
                              [&](int64_t i) {
                                  ++calls;
                                  require(i < 10, ErrorKind::InvalidArgument, "stop");
                              }),
                 Error);
    EXPECT_LT(calls, 1000);
    EXPECT_GE(usable_cpus(), 1);
}

}  // namespace
}  // namespace ggmlx
