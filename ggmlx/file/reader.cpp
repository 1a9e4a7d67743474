#include "ggmlx/file/reader.h"

#include <algorithm>
#include <cstring>

#include "ggmlx/core/error.h"
#include "ggmlx/file/frames.h"
#include "ggmlx/file/index.h"
#include "ggmlx/file/layout.h"

namespace ggmlx {
namespace {

DataLayout layout_of(const StoredTensor& t) { return data_layout(t.name, t.dtype, t.role, t.shape, t.compressed); }

/// Checksums of the slices of a tensor whose raw bytes are in memory.
std::vector<Checksum> checksums_of_raw(const DataLayout& layout, std::span<const std::byte> raw) {
    std::vector<Checksum> slices(layout.n_slices);
    for (uint64_t i = 0; i < layout.n_slices; ++i) slices[i] = xxh3(raw.subspan(i * layout.stride, layout.slice_bytes));
    return slices;
}

std::string entry_name(const std::string& path, const StoredTensor& tensor) { return path + ": tensor " + tensor.name; }

void check_all_used(std::span<const std::byte> rest, const std::string& what) {
    require(rest.empty(), ErrorKind::CorruptFile, "{}: {} bytes follow its compressed data", what, rest.size());
}

}  // namespace

ModelFile ModelFile::open(const std::string& path) {
    require(!path.ends_with(".partial"), ErrorKind::Unsupported,
            "{} is still being written, or was left by a conversion that was stopped: run the conversion again, it "
            "replaces this file",
            path);
    ModelFile model;
    model.file_ = std::make_unique<const MappedFile>(path);
    model.direct_.emplace(*model.file_);
    model.bytes_ = model.file_->bytes();
    model.path_ = path;
    model.parse();
    return model;
}

ModelFile ModelFile::from_bytes(std::span<const std::byte> bytes, std::string name) {
    ModelFile model;
    model.bytes_ = bytes;
    model.path_ = std::move(name);
    model.parse();
    return model;
}

void ModelFile::parse() {
    FileIndex index = parse_index(bytes_, path_);
    version_ = index.version;
    documents_ = std::move(index.documents);
    tensors_ = std::move(index.tensors);
    for (size_t i = 0; i < tensors_.size(); ++i) tensor_by_name_.emplace(tensors_[i].name, i);
}

std::vector<std::string> ModelFile::document_names() const {
    std::vector<std::string> names;
    for (const StoredDocument& document : documents_) names.push_back(document.name);
    return names;
}

const StoredDocument* ModelFile::find_document(std::string_view name) const {
    auto it = std::find_if(documents_.begin(), documents_.end(), [&](const auto& d) { return d.name == name; });
    return it == documents_.end() ? nullptr : &*it;
}

bool ModelFile::has_document(std::string_view name) const { return find_document(name) != nullptr; }

std::string ModelFile::document(std::string_view name) const {
    const StoredDocument* document = find_document(name);
    require(document != nullptr, ErrorKind::InvalidArgument, "{} has no document called {}", path_, name);
    const std::string what = fmt::format("{}: document {}", path_, name);
    std::string text(document->raw_bytes, '\0');
    const std::span<std::byte> text_bytes = std::as_writable_bytes(std::span(text));
    check_all_used(expand_frame(bytes_.subspan(document->offset, document->stored_bytes), text_bytes, what), what);
    require(xxh3(text_bytes) == document->checksum, ErrorKind::CorruptFile, "{}: its checksum is wrong", what);
    return text;
}

const StoredTensor* ModelFile::find(std::string_view name) const {
    auto it = tensor_by_name_.find(name);
    return it == tensor_by_name_.end() ? nullptr : &tensors_[it->second];
}

std::span<const std::byte> ModelFile::stored_bytes(const StoredTensor& tensor) const {
    return bytes_.subspan(tensor.offset, tensor.stored_bytes);
}

void ModelFile::read(const StoredTensor& tensor, std::span<std::byte> dst) const {
    const std::string what = entry_name(path_, tensor);
    require(dst.size() == tensor.raw_bytes, ErrorKind::InvalidArgument, "{}: it has {} bytes, not {}", what,
            tensor.raw_bytes, dst.size());
    const DataLayout layout = layout_of(tensor);
    std::span<const std::byte> stored = stored_bytes(tensor);
    if (tensor.compressed) {
        for (uint64_t i = 0; i < layout.n_slices; ++i)
            stored = expand_frame(stored, dst.subspan(i * layout.stride, layout.slice_bytes), what);
        check_all_used(stored, what);
    } else {
        std::memcpy(dst.data(), stored.data(), stored.size());
    }
    check(tensor, dst);
}

void ModelFile::check(const StoredTensor& tensor, std::span<const std::byte> raw) const {
    check(tensor, checksums_of_raw(layout_of(tensor), raw));
}

void ModelFile::check(const StoredTensor& tensor, std::span<const Checksum> slices) const {
    require(combine(slices) == tensor.checksum, ErrorKind::CorruptFile,
            "{}: its checksum is wrong: the data was damaged", entry_name(path_, tensor));
}

void ModelFile::read_direct(uint64_t offset, std::span<std::byte> dst) const {
    if (direct_)
        direct_->read(offset, dst);
    else
        std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), dst.size(), dst.begin());
}

Checksum ModelFile::compute_checksum(const StoredTensor& tensor) const {
    const DataLayout layout = layout_of(tensor);
    std::span<const std::byte> stored = stored_bytes(tensor);
    if (!tensor.compressed) return combine(checksums_of_raw(layout, stored));
    Buffer slice(layout.slice_bytes);
    std::vector<Checksum> slices(layout.n_slices);
    for (Checksum& checksum : slices) {
        stored = expand_frame(stored, slice.bytes(), entry_name(path_, tensor));
        checksum = xxh3(slice.bytes());
    }
    check_all_used(stored, entry_name(path_, tensor));
    return combine(slices);
}

}  // namespace ggmlx
