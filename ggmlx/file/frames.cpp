#include "ggmlx/file/frames.h"

#include <zstd.h>

#include "ggmlx/core/error.h"

namespace ggmlx {

std::vector<std::byte> compress_frame(std::span<const std::byte> raw) {
    std::vector<std::byte> frame(ZSTD_compressBound(raw.size()));
    const size_t size = ZSTD_compress(frame.data(), frame.size(), raw.data(), raw.size(), ZSTD_CLEVEL_DEFAULT);
    require(!ZSTD_isError(size), ErrorKind::OutOfMemory, "cannot compress {} bytes: {}", raw.size(),
            ZSTD_getErrorName(size));
    frame.resize(size);
    return frame;
}

uint64_t compressed_bound(uint64_t raw_bytes) { return ZSTD_compressBound(raw_bytes); }

std::span<const std::byte> expand_frame(std::span<const std::byte> frames, std::span<std::byte> dst,
                                        const std::string& what) {
    const size_t frame_bytes = ZSTD_findFrameCompressedSize(frames.data(), frames.size());
    require(!ZSTD_isError(frame_bytes), ErrorKind::CorruptFile, "{}: the compressed data is damaged: {}", what,
            ZSTD_getErrorName(frame_bytes));
    const unsigned long long content = ZSTD_getFrameContentSize(frames.data(), frames.size());
    require(content == dst.size(), ErrorKind::CorruptFile, "{}: the compressed data does not expand to {} bytes", what,
            dst.size());
    const size_t size = ZSTD_decompress(dst.data(), dst.size(), frames.data(), frame_bytes);
    require(size == dst.size(), ErrorKind::CorruptFile, "{}: the compressed data is damaged: {}", what,
            ZSTD_isError(size) ? ZSTD_getErrorName(size) : "it is too short");
    return frames.subspan(frame_bytes);
}

}  // namespace ggmlx
