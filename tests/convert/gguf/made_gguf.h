#pragma once
// GGUF files made up in memory, field by field, to be damaged by tests.

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "convert/gguf/file.h"

namespace convert {

/// A number in the bytes of a file.
struct GgufField {
    std::string name;
    size_t offset = 0, size = 0;
};

struct MadeGgufTensor {
    std::string name;
    std::vector<uint64_t> dims;  ///< innermost first, as in the file
    GgufType type = GgufType::F32;
    std::string bytes;
};

/// Keys and tensors come in the order in which they are added.
class MadeGguf {
  public:
    uint32_t version = 3;
    uint64_t alignment = 32;  ///< of the data; general.alignment is only written by key()
    std::vector<MadeGgufTensor> tensors;

    MadeGguf& key(const std::string& name, GgufKind kind, const std::string& value) {
        keys_.push_back({name, kind, GgufKind::U8, false, 1, {value}});
        return *this;
    }
    MadeGguf& text(const std::string& name, const std::string& value) { return key(name, GgufKind::String, value); }
    MadeGguf& u32(const std::string& name, uint32_t value) { return key(name, GgufKind::U32, raw(value)); }
    MadeGguf& f32(const std::string& name, float value) { return key(name, GgufKind::F32, raw(value)); }
    MadeGguf& flag(const std::string& name, bool value) { return key(name, GgufKind::Bool, std::string(1, value)); }
    MadeGguf& texts(const std::string& name, const std::vector<std::string>& values) {
        keys_.push_back({name, GgufKind::Array, GgufKind::String, true, values.size(), values});
        return *this;
    }
    template <class T>
    MadeGguf& array(const std::string& name, GgufKind kind, const std::vector<T>& values) {
        std::string bytes;
        for (const T value : values) bytes += raw(value);
        keys_.push_back({name, GgufKind::Array, kind, true, values.size(), {bytes}});
        return *this;
    }
    MadeGguf& remove(const std::string& name) {
        std::erase_if(keys_, [&](const Key& key) { return key.name == name; });
        return *this;
    }
    MadeGguf& tensor(std::string name, std::vector<uint64_t> dims, GgufType type, std::string bytes) {
        tensors.push_back({std::move(name), std::move(dims), type, std::move(bytes)});
        return *this;
    }

    /// The file; also fills fields().
    std::string bytes() {
        fields_.clear();
        std::string out = "GGUF";
        fields_.push_back({"magic", 0, 4});
        put(out, "version", version);
        put(out, "n_tensors", uint64_t{tensors.size()});
        put(out, "n_keys", uint64_t{keys_.size()});
        for (const Key& key : keys_) put_key(out, key);
        uint64_t offset = 0;
        for (const MadeGgufTensor& tensor : tensors) {
            put_text(out, "tensor name", tensor.name);
            put(out, "n_dims", static_cast<uint32_t>(tensor.dims.size()));
            for (uint64_t dim : tensor.dims) put(out, "dim", dim);
            put(out, "tensor type", static_cast<uint32_t>(tensor.type));
            put(out, "offset", offset);
            offset = aligned(offset + tensor.bytes.size());
        }
        for (const MadeGgufTensor& tensor : tensors) {
            out.resize(aligned(out.size()));
            out += tensor.bytes;
        }
        return out;
    }
    const std::vector<GgufField>& fields() const { return fields_; }

    template <class T>
    static std::string raw(T value) {
        return {reinterpret_cast<const char*>(&value), sizeof value};
    }

  private:
    struct Key {
        std::string name;
        GgufKind kind, element;
        bool is_array;
        uint64_t count;
        std::vector<std::string> values;  ///< texts, or one with the bytes of all elements
    };

    uint64_t aligned(uint64_t n) const { return (n + alignment - 1) / alignment * alignment; }
    template <class T>
    void put(std::string& out, const std::string& name, T value) {
        fields_.push_back({name, out.size(), sizeof value});
        out += raw(value);
    }
    void put_text(std::string& out, const std::string& name, const std::string& text) {
        put(out, name + " length", uint64_t{text.size()});
        out += text;
    }
    void put_key(std::string& out, const Key& key) {
        put_text(out, "key", key.name);
        put(out, key.name + " type", static_cast<uint32_t>(key.kind));
        if (key.is_array) {
            put(out, key.name + " element type", static_cast<uint32_t>(key.element));
            put(out, key.name + " count", key.count);
        }
        const bool texts = key.kind == GgufKind::String || (key.is_array && key.element == GgufKind::String);
        for (const std::string& value : key.values) {
            if (texts) {
                put_text(out, key.name, value);
            } else {
                fields_.push_back({key.name, out.size(), std::min<size_t>(value.size(), 8)});
                out += value;
            }
        }
    }

    std::vector<Key> keys_;
    std::vector<GgufField> fields_;
};

/// The file must live as long as the bytes.
inline GgufFile gguf_of(const std::string& bytes) {
    return GgufFile::from_bytes(std::as_bytes(std::span(bytes.data(), bytes.size())), "made.gguf");
}

}  // namespace convert
