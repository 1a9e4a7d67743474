#pragma once
// Cuts an op's scratch memory into arrays. The same sequence of take() calls on a null base measures how much is
// needed, so that size and use cannot drift apart.

#include <cstddef>
#include <cstdint>

#include "ggmlx/core/math.h"

namespace ggmlx::cpu {

class Scratch {
  public:
    /// base is 64-byte aligned, or null to measure.
    explicit Scratch(std::byte* base) : base_(base) {}
    /// Room for n values, 64-byte aligned; null when measuring.
    template <class T>
    T* take(int64_t n) {
        T* p = base_ ? reinterpret_cast<T*>(base_ + used_) : nullptr;
        used_ += static_cast<size_t>(round_up(n * static_cast<int64_t>(sizeof(T)), 64));
        return p;
    }
    size_t used_bytes() const { return used_; }

  private:
    std::byte* base_;
    size_t used_ = 0;
};

}  // namespace ggmlx::cpu
