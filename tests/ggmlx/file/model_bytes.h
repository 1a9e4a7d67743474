#pragma once
// Small .ggmx files in memory, for tests that break them. Also used by the fuzz target.

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "ggmlx/file/checksum.h"
#include "ggmlx/file/format.h"

namespace ggmlx::test {

inline format::Header header_of(std::span<const std::byte> file) {
    format::Header header{};
    if (file.size() >= sizeof header) std::memcpy(&header, file.data(), sizeof header);
    return header;
}

/// Header and index of a file whose header is right.
inline size_t structure_bytes(std::span<const std::byte> file) {
    const format::Header header = header_of(file);
    return sizeof header + header.n_documents * sizeof(format::DocumentEntry) +
           header.n_tensors * sizeof(format::TensorEntry) + header.names_bytes;
}

/// Recomputes the three digests of the structure, as far as the header's sizes fit the bytes: so that a broken field is
/// met by its own check instead of by a digest. Does nothing for files shorter than a header.
inline void reseal(std::span<std::byte> file) {
    if (file.size() < sizeof(format::Header)) return;
    format::Header header = header_of(file);
    const std::span<std::byte> body = file.subspan(sizeof header);
    const uint64_t entries_bytes =
        header.n_documents * sizeof(format::DocumentEntry) + header.n_tensors * sizeof(format::TensorEntry);
    if (entries_bytes <= body.size() && header.names_bytes <= body.size() - entries_bytes) {
        const uint64_t index_bytes = entries_bytes + header.names_bytes;
        header.index_digest = xxh3(body.first(index_bytes)).digest();
        if (header.documents_bytes <= body.size() - index_bytes)
            header.documents_digest = xxh3(body.subspan(index_bytes, header.documents_bytes)).digest();
    }
    std::memcpy(file.data(), &header, sizeof header);
    header.header_digest = xxh3(file.first(offsetof(format::Header, header_digest))).digest();
    std::memcpy(file.data(), &header, sizeof header);
}

}  // namespace ggmlx::test
