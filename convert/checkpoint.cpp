#include "convert/checkpoint.h"

#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ggmlx/core/error.h"

namespace convert {
namespace {

namespace fs = std::filesystem;
using ggmlx::ErrorKind;
using ggmlx::fail;
using ggmlx::require;

constexpr std::string_view kSingle = "model.safetensors", kIndex = "model.safetensors.index.json";

std::string read_file(const fs::path& path) {
    const ggmlx::MappedFile file(path.string());
    const auto bytes = file.bytes();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The index: tensor -> shard. A shard is a plain file name, so that an index cannot point out of its folder.
std::map<std::string, std::string> read_weight_map(const std::string& path) {
    using nlohmann::json;
    json root;
    try {
        root = json::parse(read_file(path));
    } catch (const json::exception& error) {
        fail(ErrorKind::CorruptFile, "{} is no valid JSON: {}", path, error.what());
    }
    require(root.is_object() && root.contains("weight_map") && root["weight_map"].is_object(), ErrorKind::CorruptFile,
            "{} has no weight_map", path);
    std::map<std::string, std::string> weight_map;
    for (const auto& [tensor, shard] : root["weight_map"].items()) {
        require(shard.is_string(), ErrorKind::CorruptFile, "{}: the shard of \"{}\" is no file name", path, tensor);
        const auto file = shard.get<std::string>();
        require(!file.empty() && file != ".." && file.find('/') == file.npos && file.find('\0') == file.npos,
                ErrorKind::CorruptFile, "{}: the shard \"{}\" of \"{}\" is no plain file name", path, file, tensor);
        weight_map[tensor] = file;
    }
    require(!weight_map.empty(), ErrorKind::CorruptFile, "{} names no tensor", path);
    return weight_map;
}

/// Refuses, naming every shard that is not there and how many tensors it should hold.
void require_all_shards(const std::map<std::string, int64_t>& tensors_of_shard, const fs::path& folder) {
    std::string missing;
    int64_t n_tensors = 0;
    for (const auto& [shard, count] : tensors_of_shard) {
        if (fs::exists(folder / shard)) continue;
        missing += fmt::format("\n  {} ({} tensors)", shard, count);
        n_tensors += count;
    }
    require(missing.empty(), ErrorKind::CorruptFile,
            "{}: shards named by {} are missing, and with them {} tensors; is the download complete?{}",
            folder.string(), kIndex, n_tensors, missing);
}

[[noreturn]] void no_weights(const fs::path& folder) {
    std::string found;
    bool pickled = false;
    for (const auto& entry : fs::directory_iterator(folder)) {
        if (entry.path().extension() == ".safetensors") found += " " + entry.path().filename().string();
        pickled = pickled || entry.path().extension() == ".bin" || entry.path().extension() == ".pth";
    }
    require(found.empty(), ErrorKind::InvalidArgument, "{} has neither {} nor {}, but{}; name the one file to convert",
            folder.string(), kSingle, kIndex, found);
    require(!pickled, ErrorKind::Unsupported,
            "{} holds weights in pickled form (.bin, .pth), which can run code when read; fetch the safetensors form",
            folder.string());
    fail(ErrorKind::InvalidArgument, "{} is no checkpoint: it has neither {} nor {}", folder.string(), kSingle, kIndex);
}

}  // namespace

Checkpoint Checkpoint::open(const std::string& path) {
    Checkpoint checkpoint;
    if (!fs::is_directory(path)) {
        require(fs::exists(path), ErrorKind::Io, "{} does not exist", path);
        const fs::path parent = fs::path(path).parent_path();
        checkpoint.folder_ = parent.empty() ? "." : parent.string();
        checkpoint.add_file(path);
        return checkpoint;
    }
    checkpoint.folder_ = path;
    const fs::path folder(path);
    if (fs::exists(folder / kSingle))
        checkpoint.add_file((folder / kSingle).string());
    else if (fs::exists(folder / kIndex))
        checkpoint.open_sharded((folder / kIndex).string());
    else
        no_weights(folder);
    return checkpoint;
}

void Checkpoint::add_file(const std::string& path) {
    const SafetensorsFile& file = files_.emplace_back(SafetensorsFile::open(path));
    for (const SourceTensor& tensor : file.tensors()) {
        auto [place, is_new] = tensors_.try_emplace(tensor.name, Entry{&file, &tensor});
        require(is_new, ErrorKind::CorruptFile, "tensor \"{}\" is in {} and in {}", tensor.name,
                place->second.file->path(), path);
    }
}

void Checkpoint::open_sharded(const std::string& index_path) {
    const auto weight_map = read_weight_map(index_path);
    std::map<std::string, int64_t> tensors_of_shard;
    for (const auto& [tensor, shard] : weight_map) ++tensors_of_shard[shard];
    require_all_shards(tensors_of_shard, folder_);
    for (const auto& [shard, count] : tensors_of_shard) add_file((fs::path(folder_) / shard).string());

    std::string disagreements;
    for (const auto& [tensor, shard] : weight_map) {
        const Entry* entry = find(tensor);
        if (!entry || fs::path(entry->file->path()).filename() != shard)
            disagreements += fmt::format("\n  {}: the index says {}, which does not hold it", tensor, shard);
    }
    for (const auto& [tensor, entry] : tensors_)
        if (!weight_map.contains(tensor))
            disagreements += fmt::format("\n  {}: in {}, but not in the index", tensor,
                                         fs::path(entry.file->path()).filename().string());
    require(disagreements.empty(), ErrorKind::CorruptFile, "{} and its shards disagree:{}", index_path, disagreements);
}

const Checkpoint::Entry* Checkpoint::find(std::string_view name) const {
    auto it = tensors_.find(name);
    return it == tensors_.end() ? nullptr : &it->second;
}

std::vector<std::string> Checkpoint::weight_files() const {
    std::vector<std::string> paths;
    for (const SafetensorsFile& file : files_) paths.push_back(file.path());
    return paths;
}

std::optional<std::string> Checkpoint::document(std::string_view name) const {
    const fs::path path = fs::path(folder_) / name;
    return fs::exists(path) ? std::optional(read_file(path)) : std::nullopt;
}

}  // namespace convert
