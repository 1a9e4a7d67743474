// Reads past the page cache: any offset, any size, any destination.

#include "ggmlx/core/direct_reader.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>

#include "ggmlx/core/error.h"

namespace ggmlx {
namespace {

class DirectReaderTest : public testing::Test {
  protected:
    static constexpr size_t kSize = 5 * DirectReader::kAlignment + 100;
    std::string path_ =
        testing::TempDir() + "direct_reader_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::string text_ = std::string(kSize, '\0');

    void SetUp() override {
        for (size_t i = 0; i < kSize; ++i) text_[i] = static_cast<char>(i * 31 + i / 251);
        std::ofstream(path_, std::ios::binary) << text_;
    }
    void TearDown() override { std::remove(path_.c_str()); }
};

TEST_F(DirectReaderTest, GivesTheBytesOfAnyRange) {
    const MappedFile file(path_);
    const DirectReader reader(file);
    Buffer memory(kSize + 2 * DirectReader::kAlignment);
    for (size_t offset : {size_t{0}, size_t{1}, size_t{64}, size_t{4096}, size_t{5000}, size_t{3 * 4096 - 1}})
        for (size_t size : {size_t{0}, size_t{1}, size_t{100}, size_t{4096}, size_t{8200}, kSize - offset})
            for (size_t shift : {offset % DirectReader::kAlignment, size_t{7}}) {
                std::memset(memory.data(), 0x55, memory.size());
                const auto to = memory.bytes().subspan(shift, size);
                reader.read(offset, to);
                EXPECT_EQ(std::memcmp(to.data(), text_.data() + offset, size), 0) << offset << " " << size;
                EXPECT_EQ(memory.bytes()[shift + size], std::byte{0x55}) << "wrote behind the end";
                for (size_t i = 0; i < shift; ++i) ASSERT_EQ(memory.bytes()[i], std::byte{0x55}) << "wrote before";
            }
}

TEST_F(DirectReaderTest, ReadsTheFileThatWasOpenedWhateverItsNameMeansNow) {
    const MappedFile file(path_);
    const DirectReader reader(file);
    std::remove(path_.c_str());
    std::ofstream(path_, std::ios::binary) << "another file";
    std::string read(kSize, '\0');
    reader.read(0, std::as_writable_bytes(std::span(read)));
    EXPECT_EQ(read, text_);
}

TEST_F(DirectReaderTest, TheEndOfTheFileIsAnErrorWithItsPlace) {
    const MappedFile file(path_);
    const DirectReader reader(file);
    std::string read(4096, '\0');
    try {
        reader.read(kSize - 10, std::as_writable_bytes(std::span(read)));
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::Io);
        EXPECT_NE(std::string(e.what()).find(path_ + ": it ends at offset " + std::to_string(kSize)), std::string::npos)
            << e.what();
    }
}

}  // namespace
}  // namespace ggmlx
