#include "ggmlx/file/output_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "ggmlx/core/error.h"

namespace ggmlx {
namespace {

/// While it lives, a write beyond the process's file size limit gives EFBIG in this thread instead of killing the
/// process with SIGXFSZ.
class FileSizeSignalBlock {
  public:
    FileSizeSignalBlock() {
        sigemptyset(&signal_);
        sigaddset(&signal_, SIGXFSZ);
        sigset_t pending;
        sigpending(&pending);
        was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
        pthread_sigmask(SIG_BLOCK, &signal_, &previous_);
    }
    ~FileSizeSignalBlock() {
        const timespec no_wait{};
        if (!was_pending_) sigtimedwait(&signal_, nullptr, &no_wait);  // takes ours, if there was one
        pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
    }
    FileSizeSignalBlock(const FileSizeSignalBlock&) = delete;
    FileSizeSignalBlock& operator=(const FileSizeSignalBlock&) = delete;

  private:
    sigset_t signal_{}, previous_{};
    bool was_pending_ = false;
};

std::string folder_of(const std::string& path) {
    const size_t slash = path.rfind('/');
    if (slash == path.npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

void check_target(const std::string& path) {
    struct stat st {};
    const bool is_folder =
        path.empty() || path.back() == '/' || (::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode));
    require(!is_folder, ErrorKind::Io, "cannot write {}: it is a folder; give the name of a file",
            path.empty() ? "a file without a name" : path);
}

void check_free_space(const std::string& path, uint64_t needed_bytes) {
    const std::string folder = folder_of(path);
    struct statvfs fs {};
    require(::statvfs(folder.c_str(), &fs) == 0, ErrorKind::Io, "cannot write {}: folder {}: {}", path, folder,
            std::strerror(errno));
    const uint64_t free_bytes = static_cast<uint64_t>(fs.f_bavail) * fs.f_frsize;
    require(needed_bytes <= free_bytes, ErrorKind::Io,
            "cannot write {}: it needs {} bytes, but only {} are free in {}: free some space or choose another folder",
            path, needed_bytes, free_bytes, folder);
}

/// Whether the name still leads to the open file: a writer that finished meanwhile has renamed it away.
bool is_same_file(int fd, const std::string& path) {
    struct stat opened {
    }, named{};
    return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

}  // namespace

OutputFile::OutputFile(const std::string& path, uint64_t needed_bytes) : path_(path), partial_(path + ".partial") {
    check_target(path);
    check_free_space(path, needed_bytes);
    lock_partial();
    owns_partial_ = true;
    if (::ftruncate(file_.fd(), 0) != 0) fail_io("empty");
}

OutputFile::~OutputFile() {
    if (owns_partial_) ::unlink(partial_.c_str());
}

void OutputFile::fail_io(const char* doing) const {
    fail(ErrorKind::Io, "cannot {} {}: {}", doing, partial_, std::strerror(errno));
}

void OutputFile::lock_partial() {
    do {
        file_.reset(::open(partial_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
        if (file_.fd() < 0) fail_io("create");
        const bool is_taken = ::flock(file_.fd(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        // Any other failure means a file system without locks: go on without one.
        require(!is_taken, ErrorKind::Io, "cannot write {}: another process is writing {} at this moment", path_,
                partial_);
    } while (!is_same_file(file_.fd(), partial_));
}

void OutputFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
    const FileSizeSignalBlock block;
    while (!bytes.empty()) {
        constexpr size_t kPiece = size_t{1} << 30;  // the kernel takes less than 2 GiB at once
        const size_t n = std::min(bytes.size(), kPiece);
        const ssize_t written = ::pwrite(file_.fd(), bytes.data(), n, static_cast<off_t>(offset));
        if (written < 0 && errno == EINTR) continue;
        require(written > 0, ErrorKind::Io, "cannot write {}: {} (at byte {})", partial_,
                std::strerror(written < 0 ? errno : ENOSPC), offset);
        offset += static_cast<uint64_t>(written);
        bytes = bytes.subspan(static_cast<size_t>(written));
    }
}

void OutputFile::publish() {
    if (::fsync(file_.fd()) != 0) fail_io("write");
    // Some file systems report a failed write only when a descriptor is closed; ours must stay open to hold the lock.
    const int copy = ::dup(file_.fd());
    if (copy < 0 || ::close(copy) != 0) fail_io("write");
    if (::rename(partial_.c_str(), path_.c_str()) != 0) fail_io("rename");
    owns_partial_ = false;
    file_.reset();
    const Descriptor folder(::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const bool synced = folder.is_open() && (::fsync(folder.fd()) == 0 || errno == EINVAL);
    require(synced, ErrorKind::Io, "{} is complete, but its folder could not be made durable: {}", path_,
            std::strerror(errno));
}

}  // namespace ggmlx
