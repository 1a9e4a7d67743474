#include "convert/gguf/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "ggmlx/core/error.h"

namespace convert {
namespace {

using ggmlx::ErrorKind;
using ggmlx::require;

constexpr int64_t kMaxParts = 65535;

int64_t part_count(const GgufMetadata& metadata) { return metadata.integer("split.count", 0, kMaxParts).value_or(1); }

/// "-00001-of-00003.gguf"
std::string part_ending(int64_t number, int64_t n_parts) {
    return fmt::format("-{:05}-of-{:05}.gguf", number, n_parts);
}

}  // namespace

bool is_gguf_file(const std::string& path) {
    char magic[4] = {};
    std::ifstream file(path, std::ios::binary);
    if (!file.read(magic, sizeof magic)) return false;
    const std::string_view head(magic, sizeof magic);
    return head == "GGUF" || head == "FUGG";
}

GgufCheckpoint GgufCheckpoint::open(const std::string& path) {
    GgufCheckpoint checkpoint;
    checkpoint.add_file(GgufFile::open(path));
    const int64_t n_parts = part_count(checkpoint.metadata());
    if (n_parts > 1) checkpoint.open_parts(n_parts);
    return checkpoint;
}

GgufCheckpoint GgufCheckpoint::from_file(GgufFile file) {
    GgufCheckpoint checkpoint;
    checkpoint.add_file(std::move(file));
    require(part_count(checkpoint.metadata()) <= 1, ErrorKind::Unsupported, "{} is one of several parts",
            checkpoint.path());
    return checkpoint;
}

void GgufCheckpoint::add_file(GgufFile opened) {
    const GgufFile& file = files_.emplace_back(std::move(opened));
    for (const GgufTensor& tensor : file.tensors()) {
        const auto [place, is_new] = tensors_.try_emplace(tensor.name, Entry{&file, &tensor});
        require(is_new, ErrorKind::CorruptFile, "tensor \"{}\" is in {} and in {}", tensor.name,
                place->second.file->path(), file.path());
    }
}

void GgufCheckpoint::open_parts(int64_t n_parts) {
    const std::string first = path(), ending = part_ending(1, n_parts);
    require(metadata().required_integer("split.no", 0, kMaxParts) == 0 && first.ends_with(ending),
            ErrorKind::InvalidArgument, "{} is one of {} parts; name the first, whose name ends in {}", first, n_parts,
            ending);
    const std::string stem = first.substr(0, first.size() - ending.size());
    std::string missing;
    for (int64_t i = 2; i <= n_parts; ++i)
        if (const std::string part = stem + part_ending(i, n_parts); !std::filesystem::exists(part))
            missing += "\n  " + part;
    require(missing.empty(), ErrorKind::Io, "{} is the first of {} parts; is the download complete? There is no{}",
            first, n_parts, missing);
    for (int64_t i = 2; i <= n_parts; ++i) {
        GgufFile part = GgufFile::open(stem + part_ending(i, n_parts));
        require(part_count(part.metadata()) == n_parts &&
                    part.metadata().required_integer("split.no", 0, kMaxParts) == i - 1,
                ErrorKind::CorruptFile, "{} is not part {} of {} of {}", part.path(), i, n_parts, first);
        add_file(std::move(part));
    }
    const auto n_tensors = metadata().required_integer("split.tensors.count", 0, INT32_MAX);
    require(static_cast<int64_t>(tensors_.size()) == n_tensors, ErrorKind::CorruptFile,
            "{} and its parts hold {} tensors, not the {} that split.tensors.count says", first, tensors_.size(),
            n_tensors);
}

const GgufCheckpoint::Entry* GgufCheckpoint::find(std::string_view name) const {
    const auto it = tensors_.find(name);
    return it == tensors_.end() ? nullptr : &it->second;
}

std::vector<std::string> GgufCheckpoint::files() const {
    std::vector<std::string> paths;
    for (const GgufFile& file : files_) paths.push_back(file.path());
    return paths;
}

}  // namespace convert
