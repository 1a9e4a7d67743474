#pragma once
// What a .ggmx file begins with: header, index and documents. Contents are known in full only when all tensor data is
// written, sizes from the start.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ggmlx/file/format.h"
#include "ggmlx/file/writer.h"

namespace ggmlx {

class FrontMatter {
  public:
    /// Compresses the documents and fills in all entries but for offset, stored_bytes and digest of the tensors.
    /// Throws invalid_argument for bad or duplicate names, and for documents or tensors that the format does not allow.
    FrontMatter(const std::vector<DocumentToWrite>& documents, const std::vector<TensorToWrite>& tensors,
                bool compress);

    /// Where it ends and tensor data may begin.
    uint64_t end() const { return sizeof header_ + index_bytes() + header_.documents_bytes; }
    /// All of it as it stands in the file, checksums included.
    std::vector<std::byte> serialize(uint64_t file_bytes);

    std::vector<format::TensorEntry> tensors;  ///< in the order given; the writer completes them

  private:
    uint64_t index_bytes() const;
    void add_documents(const std::vector<DocumentToWrite>& to_write);
    void add_tensor(const TensorToWrite& tensor, bool compress);

    format::Header header_{};
    std::vector<format::DocumentEntry> documents_;
    std::string names_;
    std::vector<std::vector<std::byte>> frames_;  // of the documents
};

}  // namespace ggmlx
