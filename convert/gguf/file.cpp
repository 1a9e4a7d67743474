#include "convert/gguf/file.h"

#include "convert/gguf/header.h"
#include "ggmlx/core/error.h"

namespace convert {

GgufFile GgufFile::open(const std::string& path) {
    GgufFile result(path);
    result.file_ = ggmlx::MappedFile(path);
    result.bytes_ = result.file_.bytes();
    result.parse();
    return result;
}

GgufFile GgufFile::from_bytes(std::span<const std::byte> bytes, std::string path) {
    GgufFile result(std::move(path));
    result.bytes_ = bytes;
    result.parse();
    return result;
}

void GgufFile::parse() {
    tensors_ = parse_gguf_header(bytes_, metadata_);
    for (size_t i = 0; i < tensors_.size(); ++i)
        ggmlx::require(by_name_.emplace(tensors_[i].name, i).second, ggmlx::ErrorKind::CorruptFile,
                       "{}: the tensor \"{}\" occurs twice", path(), tensors_[i].name);
}

const GgufTensor* GgufFile::find(std::string_view name) const {
    const auto it = by_name_.find(name);
    return it == by_name_.end() ? nullptr : &tensors_[it->second];
}

}  // namespace convert
