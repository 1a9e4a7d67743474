#pragma once
// A checkpoint as Hugging Face publishes it: a folder with config.json, tokenizer files and weights, in one
// model.safetensors or in shards that model.safetensors.index.json names.

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convert/safetensors.h"

namespace convert {

/// Opened whole: every shard's header is read and compared with the index, in both directions, before anything else
/// happens. Move-only.
class Checkpoint {
  public:
    struct Entry {
        const SafetensorsFile* file = nullptr;
        const SourceTensor* tensor = nullptr;
    };

    /// path: the folder, or one .safetensors file whose folder then gives the documents. Throws io, corrupt_file
    /// (listing every missing shard, or every tensor on which index and shards disagree) or unsupported.
    static Checkpoint open(const std::string& path);
    Checkpoint(Checkpoint&&) = default;
    Checkpoint& operator=(Checkpoint&&) = default;

    const std::string& folder() const { return folder_; }
    const std::map<std::string, Entry, std::less<>>& tensors() const { return tensors_; }
    const Entry* find(std::string_view name) const;
    /// The files that hold the weights.
    std::vector<std::string> weight_files() const;

    /// A file of the folder, whole; nothing if it is not there. Throws io if it cannot be read.
    std::optional<std::string> document(std::string_view name) const;

  private:
    Checkpoint() = default;
    void add_file(const std::string& path);
    void open_sharded(const std::string& index_path);

    std::string folder_;
    std::deque<SafetensorsFile> files_;
    std::map<std::string, Entry, std::less<>> tensors_;
};

}  // namespace convert
