#include "ggmlx/core/buffer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "ggmlx/core/error.h"
#include "ggmlx/core/math.h"

namespace ggmlx {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

void advise(const void* base, uint64_t size, uint64_t offset, uint64_t length, int advice) noexcept {
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    if (!base || offset >= size) return;
    uint64_t begin = offset / page * page;
    uint64_t end = offset + (length < size - offset ? length : size - offset);
    auto* address = const_cast<char*>(static_cast<const char*>(base)) + begin;
    (void)madvise(address, end - begin, advice);  // a hint: failure changes nothing
}

}  // namespace

void Unmap::operator()(const std::byte* p) const noexcept { munmap(const_cast<std::byte*>(p), mapped_bytes); }

Buffer::Buffer(size_t size_bytes) : size_(size_bytes) {
    if (size_bytes == 0) return;
    const bool huge = size_bytes >= 2 * kHugePage;
    const auto mapped = checked_round_up(size_bytes, huge ? kHugePage : 4096);
    // A 2 MB page needs an address that it divides: map one more and give back what sticks out at both ends.
    const size_t spare = huge ? kHugePage : 0;
    const auto total = mapped ? checked_add(*mapped, spare) : std::nullopt;
    void* p = total ? mmap(nullptr, *total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
    require(p != MAP_FAILED, ErrorKind::OutOfMemory, "cannot allocate {} bytes of memory: {}", size_bytes,
            std::strerror(total ? errno : ENOMEM));
    auto* data = static_cast<std::byte*>(p);
    if (huge) {
        const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(p) % kHugePage) % kHugePage;
        if (before > 0) munmap(data, before);
        data += before;
        if (before < spare) munmap(data + *mapped, spare - before);
        (void)madvise(data, *mapped, MADV_HUGEPAGE);  // a hint
    }
    data_ = {data, Unmap{*mapped}};
}

MappedFile::MappedFile(const std::string& path) : path_(path) {
    file_.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    const int fd = file_.fd();
    require(fd >= 0, ErrorKind::Io, "cannot open {}: {}", path, std::strerror(errno));
    struct stat st {};
    require(::fstat(fd, &st) == 0, ErrorKind::Io, "cannot read {}: {}", path, std::strerror(errno));
    require(S_ISREG(st.st_mode), ErrorKind::Io, "{} is not a regular file", path);
    size_ = static_cast<size_t>(st.st_size);
    if (size_ == 0) return;
    void* p = mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd, 0);
    require(p != MAP_FAILED, ErrorKind::Io, "cannot map {}: {}", path, std::strerror(errno));
    data_ = {static_cast<const std::byte*>(p), Unmap{size_}};
}

void MappedFile::will_need(uint64_t offset, uint64_t length) const noexcept {
    advise(data_.get(), size_, offset, length, MADV_WILLNEED);
}
void MappedFile::done_with(uint64_t offset, uint64_t length) const noexcept {
    advise(data_.get(), size_, offset, length, MADV_DONTNEED);
}

}  // namespace ggmlx
