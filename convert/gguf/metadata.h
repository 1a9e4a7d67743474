#pragma once
// The key-value pairs of a GGUF file. Values stay where they are in the mapped file; the typed look-ups read them there
// and check kind and range. Every error names file and key.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace convert {

/// Kinds of values, numbered as in files.
enum class GgufKind : uint32_t { U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64 };
inline constexpr uint32_t kGgufKindCount = 13;
std::string_view name(GgufKind kind);
/// Bytes of a value of fixed size; 0 for strings and arrays.
size_t fixed_bytes(GgufKind kind);

/// One value: `count` elements of `kind`, one after the other in `data` (strings with their lengths before them).
struct GgufValue {
    GgufKind kind = GgufKind::U8;
    bool is_array = false;
    uint64_t count = 1;
    std::span<const std::byte> data;
};

/// Views of a file, which must outlive it. A missing key is nothing; a wrong kind or a number out of range throws
/// corrupt_file.
class GgufMetadata {
  public:
    explicit GgufMetadata(std::string path) : path_(std::move(path)) {}
    /// Throws corrupt_file for a key that is there already. What `data` holds must fit count and kind.
    void add(std::string_view key, const GgufValue& value);

    const std::string& path() const { return path_; }
    const std::map<std::string_view, GgufValue>& values() const { return values_; }
    const GgufValue* find(std::string_view key) const;
    /// Elements of an array; 0 for other kinds and missing keys.
    uint64_t count(std::string_view key) const;

    /// Any kind of integer; both ends of the range included.
    std::optional<int64_t> integer(std::string_view key, int64_t min, int64_t max) const;
    /// F32 as the shortest decimal number that rounds to it (1e-5, not 9.999999747e-06); F64; any integer.
    std::optional<double> real(std::string_view key, double min, double max) const;
    std::optional<bool> boolean(std::string_view key) const;
    std::optional<std::string_view> text(std::string_view key) const;
    /// Arrays; empty if there is none.
    std::vector<std::string_view> texts(std::string_view key) const;
    std::vector<int64_t> integers(std::string_view key) const;
    std::vector<float> reals(std::string_view key) const;

    int64_t required_integer(std::string_view key, int64_t min, int64_t max) const;
    double required_real(std::string_view key, double min, double max) const;
    std::string_view required_text(std::string_view key) const;

  private:
    const GgufValue* find_scalar(std::string_view key, std::string_view wanted) const;
    const GgufValue* find_array(std::string_view key, std::string_view wanted) const;
    [[noreturn]] void wrong_kind(std::string_view key, std::string_view wanted, const GgufValue& value) const;
    [[noreturn]] void missing(std::string_view key) const;

    std::string path_;
    std::map<std::string_view, GgufValue> values_;
};

}  // namespace convert
