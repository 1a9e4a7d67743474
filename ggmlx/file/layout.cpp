#include "ggmlx/file/layout.h"

#include "ggmlx/core/error.h"
#include "ggmlx/core/math.h"
#include "ggmlx/file/format.h"
#include "ggmlx/quant/quantize.h"

namespace ggmlx {
namespace {

void check_shape(std::string_view tensor_name, DType dtype, Role role, const Shape& shape) {
    auto check = [&](bool condition, std::string_view rule) {
        require(condition, ErrorKind::InvalidArgument, "tensor {}: {}, but it is {} {} with role {}", tensor_name, rule,
                name(dtype), shape.to_string(), name(role));
    };
    check(shape.rank() >= 1, "a tensor has at least one extent");
    for (int64_t extent : shape.dims()) check(extent > 0, "no extent may be 0");
    check(role != Role::Cache, "a cache is never in a file");
    check(shape.rank() >= 2 || !is_block(dtype), "a block type needs a matrix");
    check(storable_type(dtype, shape[-1]) == dtype, "this type needs rows of a multiple of 256 values");
    if (role != Role::Expert) return;
    check(shape.rank() <= 3, "experts have at most three extents");
    check(shape[0] <= format::kMaxExperts, "there are at most 65536 experts");
    check(shape.rank() == 3 || !is_block(dtype), "experts of a block type have three extents");
}

/// Bytes of the character that begins with `lead`; 0 if none can.
size_t utf8_length(unsigned char lead) {
    if (lead < 0x80) return 1;
    if (lead < 0xc2) return 0;
    if (lead < 0xe0) return 2;
    if (lead < 0xf0) return 3;
    return lead < 0xf5 ? 4 : 0;
}

}  // namespace

DataLayout data_layout(std::string_view tensor_name, DType dtype, Role role, const Shape& shape, bool compressed) {
    check_shape(tensor_name, dtype, role, shape);
    DataLayout layout;
    layout.slice_bytes = static_cast<uint64_t>(storage_bytes(dtype, shape));
    layout.stride = layout.raw_bytes = layout.slice_bytes;
    layout.alignment = format::kAlignment;
    if (role != Role::Expert) return layout;

    const auto n_experts = static_cast<uint64_t>(shape[0]);
    if (!compressed) layout.alignment = format::kPage;
    if (shape.rank() < 3) {
        layout.expert_stride = layout.slice_bytes / n_experts;
        return layout;
    }
    layout.n_slices = n_experts;
    layout.slice_bytes /= n_experts;
    layout.stride = layout.slice_bytes;
    if (!compressed && layout.slice_bytes >= format::kPagedSlice)
        layout.stride = *checked_round_up(layout.slice_bytes, format::kPage);
    layout.expert_stride = layout.stride;
    // Within 64 bits: at most 2^62 bytes, and a page is a small part of a slice that is padded to one.
    layout.raw_bytes = (n_experts - 1) * layout.stride + layout.slice_bytes;
    return layout;
}

bool is_valid_name(std::string_view name) {
    if (name.empty() || name.size() > format::kMaxNameBytes) return false;
    while (!name.empty()) {
        const auto lead = static_cast<unsigned char>(name[0]);
        if (lead < 0x20 || lead == 0x7f) return false;
        const size_t length = utf8_length(lead);
        if (length == 0 || length > name.size()) return false;
        for (char c : name.substr(1, length - 1))
            if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) return false;
        name.remove_prefix(length);
    }
    return true;
}

bool is_valid_document_name(std::string_view name) {
    return is_valid_name(name) && name.find('/') == name.npos && name != "." && name != "..";
}

bool is_sane_document_size(uint64_t raw_bytes, uint64_t stored_bytes) {
    return raw_bytes <= format::kMaxDocumentBytes &&
           raw_bytes <= format::kDocumentAllowance + format::kDocumentExpansion * stored_bytes;
}

}  // namespace ggmlx
