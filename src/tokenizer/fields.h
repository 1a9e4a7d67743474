#pragma once
// Fields: typed access to one construct of tokenizer.json, with errors that name it. A key that a construct is not
// known to have is refused: it may change what the construct means.

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace llm {

class Fields {
  public:
    /// where: what messages call it, as "pre_tokenizer Split". Throws corrupt_file unless json is an object. The json
    /// must outlive this.
    Fields(const nlohmann::json& json, std::string where);

    /// Throws unsupported, naming the key, if there is one that is not listed.
    void only(std::initializer_list<std::string_view> known) const;

    /// Null if the key is missing or its value is null.
    const nlohmann::json* find(std::string_view key) const;
    // These throw corrupt_file, naming the key, if the value has another type, or is missing where no default is given.
    const nlohmann::json& at(std::string_view key) const;
    const nlohmann::json& list(std::string_view key) const;
    const nlohmann::json& constructs(std::string_view key) const;  ///< a list of objects
    std::string text(std::string_view key) const;
    std::string text(std::string_view key, std::string_view if_missing) const;
    bool flag(std::string_view key) const;
    bool flag(std::string_view key, bool if_missing) const;
    int64_t integer(std::string_view key) const;

    const std::string& where() const { return where_; }

  private:
    [[noreturn]] void wrong(std::string_view key, std::string_view expected) const;

    const nlohmann::json& json_;
    std::string where_;
};

/// The "type" of a construct, and the construct's Fields named "<stage> <type>".
struct Construct {
    std::string type;
    Fields fields;
    Construct(const nlohmann::json& json, std::string_view stage);
    /// Throws unsupported: "<stage> of type '<type>'".
    [[noreturn]] void unknown() const;
};

}  // namespace llm
