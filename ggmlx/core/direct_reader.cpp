#include "ggmlx/core/direct_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "ggmlx/core/error.h"

namespace ggmlx {
namespace {

/// Bytes that are missing from an address or offset to the next aligned one.
size_t to_alignment(uint64_t at) {
    return static_cast<size_t>((DirectReader::kAlignment - at % DirectReader::kAlignment) % DirectReader::kAlignment);
}

}  // namespace

// Opened anew through /proc: flags of an open file cannot be changed for this descriptor alone.
DirectReader::DirectReader(const MappedFile& file)
    : file_(&file),
      direct_(::open(("/proc/self/fd/" + std::to_string(file.descriptor())).c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT)) {
}

void DirectReader::read(uint64_t offset, std::span<std::byte> dst) const {
    const size_t head = to_alignment(offset);
    const bool congruent = to_alignment(reinterpret_cast<uintptr_t>(dst.data())) == head;
    if (direct_.is_open() && congruent && dst.size() >= head + kAlignment) {
        const size_t aligned = (dst.size() - head) / kAlignment * kAlignment;
        read_cached(offset, dst.first(head));
        const size_t done = head + read_direct(offset + head, dst.subspan(head, aligned));
        offset += done;
        dst = dst.subspan(done);
    }
    read_cached(offset, dst);
}

size_t DirectReader::read_direct(uint64_t offset, std::span<std::byte> dst) const {
    size_t done = 0;
    while (done < dst.size()) {
        const ssize_t n =
            ::pread(direct_.fd(), dst.data() + done, dst.size() - done, static_cast<off_t>(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;  // read_cached goes on, and reports what is wrong
        done += static_cast<size_t>(n);
        if (done % kAlignment != 0) break;
    }
    return done;
}

void DirectReader::read_cached(uint64_t offset, std::span<std::byte> dst) const {
    while (!dst.empty()) {
        const ssize_t n = ::pread(file_->descriptor(), dst.data(), dst.size(), static_cast<off_t>(offset));
        if (n < 0 && errno == EINTR) continue;
        require(n >= 0, ErrorKind::Io, "{}: cannot read at offset {}: {}", file_->path(), offset, std::strerror(errno));
        require(n > 0, ErrorKind::Io, "{}: it ends at offset {}, but was longer when it was opened", file_->path(),
                offset);
        offset += static_cast<uint64_t>(n);
        dst = dst.subspan(static_cast<size_t>(n));
    }
}

}  // namespace ggmlx
