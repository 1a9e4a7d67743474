#pragma once
// A model in GGUF form: one file, or the parts that gguf-split makes (NAME-00001-of-00003.gguf …).

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "convert/gguf/file.h"

namespace convert {

/// True if the file begins as GGUF files do, in either byte order.
bool is_gguf_file(const std::string& path);

/// Opened whole: the header of every part is read and checked before anything else happens. Move-only.
class GgufCheckpoint {
  public:
    struct Entry {
        const GgufFile* file = nullptr;
        const GgufTensor* tensor = nullptr;
        std::span<const std::byte> data() const { return file->data(*tensor); }
    };

    /// path: the file, of several parts the first one. Throws as GgufFile::open does; and io for a missing part,
    /// corrupt_file for parts that do not belong together, invalid_argument for a part that is not the first.
    static GgufCheckpoint open(const std::string& path);
    /// One file that is open already (tests, fuzzing). Throws unsupported if it is one of several parts.
    static GgufCheckpoint from_file(GgufFile file);
    GgufCheckpoint(GgufCheckpoint&&) = default;
    GgufCheckpoint& operator=(GgufCheckpoint&&) = default;

    const std::string& path() const { return files_.front().path(); }
    const GgufMetadata& metadata() const { return files_.front().metadata(); }
    const std::map<std::string_view, Entry>& tensors() const { return tensors_; }
    const Entry* find(std::string_view name) const;
    std::vector<std::string> files() const;

  private:
    GgufCheckpoint() = default;
    void add_file(GgufFile file);
    void open_parts(int64_t n_parts);

    std::deque<GgufFile> files_;
    std::map<std::string_view, Entry> tensors_;
};

}  // namespace convert
