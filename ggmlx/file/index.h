#pragma once
// Reads and checks the structure of a .ggmx file: header, index, documents. Tensor data is not touched.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "ggmlx/file/reader.h"

namespace ggmlx {

struct FileIndex {
    uint32_t version = 0;
    std::vector<StoredDocument> documents;
    std::vector<StoredTensor> tensors;
};

/// Everything that the result says has been checked against the bytes: all offsets and sizes lie within them, nothing
/// overlaps, all names are unique. Throws corrupt_file or unsupported with `path`, the entry and the value. Allocates
/// in proportion to the index that is really there.
FileIndex parse_index(std::span<const std::byte> bytes, const std::string& path);

}  // namespace ggmlx
