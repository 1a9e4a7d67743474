#pragma once
// An open file descriptor with one owner.

#include <unistd.h>

#include <utility>

namespace ggmlx {

/// Move-only; closes what it holds. fd is -1 when it holds nothing.
class Descriptor {
  public:
    Descriptor() = default;
    explicit Descriptor(int fd) : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        reset(std::exchange(other.fd_, -1));
        return *this;
    }
    ~Descriptor() { reset(); }

    int fd() const { return fd_; }
    bool is_open() const { return fd_ >= 0; }
    void reset(int other = -1) {
        if (fd_ >= 0) ::close(fd_);
        fd_ = other;
    }

  private:
    int fd_ = -1;
};

}  // namespace ggmlx
