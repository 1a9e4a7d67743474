#include "ggmlx/file/front_matter.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>

#include "ggmlx/core/error.h"
#include "ggmlx/file/checksum.h"
#include "ggmlx/file/frames.h"
#include "ggmlx/file/layout.h"

namespace ggmlx {

using namespace format;

namespace {

std::vector<std::vector<std::byte>> compress_documents(const std::vector<DocumentToWrite>& documents) {
    std::vector<std::vector<std::byte>> frames;
    std::set<std::string> names;
    for (const DocumentToWrite& document : documents) {
        require(is_valid_document_name(document.name), ErrorKind::InvalidArgument,
                "a document cannot be called \"{}\": a plain file name is needed", document.name);
        require(names.insert(document.name).second, ErrorKind::InvalidArgument, "two documents are called {}",
                document.name);
        frames.push_back(compress_frame(std::as_bytes(std::span(document.text))));
        require(is_sane_document_size(document.text.size(), frames.back().size()), ErrorKind::InvalidArgument,
                "the document {} of {} bytes is larger than the format allows", document.name, document.text.size());
    }
    return frames;
}

void check_tensor_names(const std::vector<TensorToWrite>& tensors) {
    std::set<std::string_view> names;
    for (const TensorToWrite& tensor : tensors) {
        require(is_valid_name(tensor.name), ErrorKind::InvalidArgument,
                "a tensor cannot be called \"{}\": 1 to {} bytes of printable UTF-8 are needed", tensor.name,
                kMaxNameBytes);
        require(names.insert(tensor.name).second, ErrorKind::InvalidArgument, "two tensors are called {}", tensor.name);
    }
}

}  // namespace

FrontMatter::FrontMatter(const std::vector<DocumentToWrite>& documents, const std::vector<TensorToWrite>& to_write,
                         bool compress)
    : frames_(compress_documents(documents)) {
    check_tensor_names(to_write);
    for (const DocumentToWrite& document : documents) names_ += document.name;
    for (const TensorToWrite& tensor : to_write) names_ += tensor.name;
    std::memcpy(header_.magic, kMagic, sizeof kMagic);
    header_.byte_order = kByteOrder;
    header_.version = kVersion;
    header_.header_bytes = sizeof header_;
    header_.n_documents = static_cast<uint32_t>(documents.size());
    header_.n_tensors = static_cast<uint32_t>(to_write.size());
    header_.names_bytes = names_.size();
    for (const auto& frame : frames_) header_.documents_bytes += frame.size();
    add_documents(documents);
    for (const TensorToWrite& tensor : to_write) add_tensor(tensor, compress);
}

uint64_t FrontMatter::index_bytes() const {
    return header_.n_documents * sizeof(DocumentEntry) + header_.n_tensors * sizeof(TensorEntry) + names_.size();
}

std::vector<std::byte> FrontMatter::serialize(uint64_t file_bytes) {
    std::vector<std::byte> out(end());
    uint64_t position = sizeof header_;
    auto put = [&](std::span<const std::byte> bytes) {
        std::copy(bytes.begin(), bytes.end(), out.data() + position);
        position += bytes.size();
    };
    put(std::as_bytes(std::span(documents_)));
    put(std::as_bytes(std::span(tensors)));
    put(std::as_bytes(std::span(names_)));
    for (const auto& frame : frames_) put(frame);
    const std::span<const std::byte> body = std::span(out).subspan(sizeof header_);
    header_.file_bytes = file_bytes;
    header_.index_digest = xxh3(body.first(index_bytes())).digest();
    header_.documents_digest = xxh3(body.subspan(index_bytes())).digest();
    header_.header_digest = xxh3(std::as_bytes(std::span(&header_, 1)).first(offsetof(Header, header_digest))).digest();
    std::memcpy(out.data(), &header_, sizeof header_);
    return out;
}

void FrontMatter::add_documents(const std::vector<DocumentToWrite>& to_write) {
    uint64_t offset = sizeof header_ + index_bytes();
    for (size_t i = 0; i < to_write.size(); ++i) {
        const std::string& text = to_write[i].text;
        documents_.push_back({static_cast<uint32_t>(to_write[i].name.size()), 0, offset, frames_[i].size(), text.size(),
                              xxh3(std::as_bytes(std::span(text))).digest()});
        offset += frames_[i].size();
    }
}

void FrontMatter::add_tensor(const TensorToWrite& tensor, bool compress) {
    const DataLayout layout = data_layout(tensor.name, tensor.dtype, tensor.role, tensor.shape, compress);
    TensorEntry entry{};
    entry.name_bytes = static_cast<uint32_t>(tensor.name.size());
    entry.dtype = static_cast<uint32_t>(tensor.dtype);
    entry.role = static_cast<uint32_t>(tensor.role);
    entry.layout = is_block(tensor.dtype) ? kTile16 : kRowMajor;
    entry.rank = static_cast<uint32_t>(tensor.shape.rank());
    entry.flags = compress ? uint32_t{kCompressed} : 0;
    for (int d = 0; d < tensor.shape.rank(); ++d) entry.extents[d] = static_cast<uint64_t>(tensor.shape[d]);
    entry.raw_bytes = layout.raw_bytes;
    entry.expert_stride = layout.expert_stride;
    tensors.push_back(entry);
}

}  // namespace ggmlx
