#pragma once
// On-disk structs and constants of .ggmx, nothing else. gguf-like-spec/README.md describes the same bytes in words.
//
// A file is: header, index (document entries, tensor entries, names), documents, tensor data. Everything is
// little-endian; every field that is not described as free is checked.

#include <cstdint>

namespace ggmlx::format {

inline constexpr char kMagic[4] = {'G', 'G', 'M', 'X'};
inline constexpr uint32_t kByteOrder = 0x0a0b0c0d;
inline constexpr uint32_t kVersion = 1;

inline constexpr uint64_t kAlignment = 64;           ///< of tensor data
inline constexpr uint64_t kPage = 4096;              ///< of expert tensors, unless compressed
inline constexpr uint64_t kPagedSlice = 256 * 1024;  ///< expert slices of at least this size start on a page each

inline constexpr uint32_t kMaxNameBytes = 1024;
inline constexpr int64_t kMaxExperts = 65536;
/// A document has at most 1 GiB, and at most 64 MiB + 64 times the bytes of its frame: no small file expands to much.
inline constexpr uint64_t kMaxDocumentBytes = uint64_t{1} << 30;
inline constexpr uint64_t kDocumentAllowance = 64 << 20, kDocumentExpansion = 64;
/// A zstd block holds at most 128 KiB and takes at least 4 bytes, so no frame expands further than this.
inline constexpr uint64_t kMaxExpansion = 128 * 1024 / 4;

/// How tensor data is arranged; decided by the dtype, stored so that a reader can check its idea of it.
enum Layout : uint32_t {
    kRowMajor = 0,  ///< plain types
    kTile16 = 1,    ///< block types: tiles of 16 rows (quant/blocks.h)
};

enum TensorFlags : uint32_t {
    kCompressed = 1,  ///< data is one zstd frame per slice, back to back
};

/// XXH3-128: the low and high half of the number.
struct Digest {
    uint64_t low, high;
};

struct Header {
    char magic[4];
    uint32_t byte_order;
    uint32_t version;
    uint32_t header_bytes;  ///< sizeof(Header); the index follows
    uint64_t file_bytes;    ///< of the whole file
    uint32_t n_documents;
    uint32_t n_tensors;
    uint64_t names_bytes;      ///< of the names that end the index
    uint64_t documents_bytes;  ///< of the documents, which follow the index back to back
    Digest index_digest;       ///< of all entries and names
    Digest documents_digest;   ///< of the documents as stored
    Digest header_digest;      ///< of the header before this field
};

struct DocumentEntry {
    uint32_t name_bytes;
    uint32_t reserved;      ///< 0
    uint64_t offset;        ///< of the zstd frame, from the start of the file
    uint64_t stored_bytes;  ///< of the frame
    uint64_t raw_bytes;     ///< of the text
    Digest digest;          ///< of the text
};

struct TensorEntry {
    uint32_t name_bytes;
    uint32_t dtype;  ///< a DType
    uint32_t role;   ///< a Role
    uint32_t layout;
    uint32_t rank;
    uint32_t flags;
    uint64_t extents[4];     ///< outermost first; those beyond the rank are 0
    uint64_t offset;         ///< of the data, from the start of the file
    uint64_t stored_bytes;   ///< in the file
    uint64_t raw_bytes;      ///< once expanded; with gaps between experts, if they have any
    uint64_t expert_stride;  ///< from one expert to the next in the raw bytes; 0 unless the role is expert
    Digest digest;           ///< of the one slice, or of the slices' digests in order
};

static_assert(sizeof(Header) == 96 && sizeof(DocumentEntry) == 48 && sizeof(TensorEntry) == 104);

}  // namespace ggmlx::format
