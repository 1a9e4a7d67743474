#include "convert/type_totals.h"

#include <algorithm>

namespace convert {

void TypeSummary::add(ggmlx::DType dtype, const ggmlx::Shape& shape) {
    auto row = std::find_if(rows_.begin(), rows_.end(), [&](const TypeTotals& r) { return r.dtype == dtype; });
    if (row == rows_.end()) row = rows_.insert(rows_.end(), TypeTotals{.dtype = dtype});
    row->n_tensors += 1;
    row->n_values += shape.n_elements();
    row->size_bytes += static_cast<uint64_t>(ggmlx::storage_bytes(dtype, shape));
}

std::vector<TypeTotals> TypeSummary::rows() const {
    std::vector<TypeTotals> sorted = rows_;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const TypeTotals& a, const TypeTotals& b) { return a.size_bytes > b.size_bytes; });
    return sorted;
}

TypeTotals TypeSummary::total() const {
    TypeTotals sum;
    for (const TypeTotals& row : rows_) {
        sum.n_tensors += row.n_tensors;
        sum.n_values += row.n_values;
        sum.size_bytes += row.size_bytes;
    }
    return sum;
}

}  // namespace convert
