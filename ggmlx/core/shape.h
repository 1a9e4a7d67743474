#pragma once
// Shape: one to four extents, outermost first, last dimension contiguous, as in PyTorch:
// weights are [n_out, n_in], stacked experts [n_expert, n_out, n_in], activations [n_tokens, n_embd].

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "ggmlx/core/error.h"

namespace ggmlx {

inline constexpr int kMaxDims = 4;

class Shape {
  public:
    Shape() = default;
    Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
    /// Throws invalid_argument for more than four dims, or a negative one.
    explicit Shape(std::span<const int64_t> dims) {
        require(dims.size() <= kMaxDims, ErrorKind::InvalidArgument, "a shape has at most {} dims, not {}", kMaxDims,
                dims.size());
        for (int64_t d : dims) {
            require(d >= 0, ErrorKind::InvalidArgument, "a shape cannot have the extent {}", d);
            dims_[static_cast<size_t>(rank_++)] = d;
        }
    }

    int rank() const { return rank_; }
    /// Extent i; negative i counts from the end, so shape[-1] is the contiguous dimension.
    int64_t operator[](int i) const { return dims_[static_cast<size_t>(i < 0 ? rank_ + i : i)]; }
    int64_t n_elements() const {
        int64_t n = 1;
        for (int64_t d : dims()) n *= d;
        return n;
    }
    /// Elements divided by the last extent: how many contiguous rows there are.
    int64_t n_rows() const {
        int64_t n = 1;
        for (int i = 0; i + 1 < rank_; ++i) n *= (*this)[i];
        return n;
    }
    std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
    bool operator==(const Shape&) const = default;
    /// "[4096, 2048]"
    std::string to_string() const {
        std::string s = "[";
        for (int i = 0; i < rank_; ++i) s += (i ? ", " : "") + std::to_string((*this)[i]);
        return s + "]";
    }

  private:
    std::array<int64_t, kMaxDims> dims_{};
    int rank_ = 0;
};

}  // namespace ggmlx
