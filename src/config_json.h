#pragma once
// Typed look-ups in a JSON object that came from a checkpoint: every number has a range, every error names the field.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llm {

/// Both ends included.
struct IntRange {
    int64_t min = 0, max = 0;
};
struct RealRange {
    double min = 0, max = 0;
};

/// The fields of one object. A missing field and null are nothing; a wrong type or a number out of range throws
/// corrupt_file.
class JsonFields {
  public:
    /// `where` leads every message: the file's name. Throws corrupt_file unless text is one JSON object.
    static JsonFields parse(std::string where, std::string_view text);
    /// An empty text is an object without fields.
    static JsonFields parse_optional(std::string where, std::string_view text);

    const std::string& where() const { return where_; }
    /// True for null too: a field that says null overrides a default.
    bool has(std::string_view name) const { return object_.contains(name); }
    bool has_value(std::string_view name) const { return find(name) != nullptr; }

    std::optional<int64_t> integer(std::string_view name, IntRange range) const;
    std::optional<double> real(std::string_view name, RealRange range) const;
    std::optional<bool> boolean(std::string_view name) const;
    std::optional<std::string> text(std::string_view name) const;
    /// A list, or one number for a list of one.
    std::optional<std::vector<int64_t>> integers(std::string_view name, IntRange range) const;
    std::optional<std::vector<std::string>> texts(std::string_view name) const;
    std::optional<JsonFields> object(std::string_view name) const;

    /// As integer() and real(), but absence throws corrupt_file.
    int64_t required_integer(std::string_view name, IntRange range) const;
    double required_real(std::string_view name, RealRange range) const;

  private:
    JsonFields(std::string where, nlohmann::json object) : where_(std::move(where)), object_(std::move(object)) {}
    const nlohmann::json* find(std::string_view name) const;
    int64_t checked_integer(std::string_view name, const nlohmann::json& value, IntRange range) const;
    [[noreturn]] void wrong_type(std::string_view name, std::string_view wanted, const nlohmann::json& value) const;

    std::string where_;
    nlohmann::json object_;
};

}  // namespace llm
