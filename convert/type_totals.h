#pragma once
// How much of a model is stored in which type: the summary that convert, quantize and inspect print.

#include <cstdint>
#include <vector>

#include "ggmlx/core/dtype.h"
#include "ggmlx/core/shape.h"

namespace convert {

struct TypeTotals {
    ggmlx::DType dtype = ggmlx::DType::F32;
    int64_t n_tensors = 0;
    int64_t n_values = 0;
    uint64_t size_bytes = 0;  ///< as stored in memory, padding included
};

/// One row per type that occurs, most bytes first.
class TypeSummary {
  public:
    void add(ggmlx::DType dtype, const ggmlx::Shape& shape);
    std::vector<TypeTotals> rows() const;
    /// All rows together; the dtype of the result means nothing.
    TypeTotals total() const;

  private:
    std::vector<TypeTotals> rows_;
};

}  // namespace convert
