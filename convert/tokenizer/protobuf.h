#pragma once
// Protocol buffers, as far as reading needs it: the fields of one message, in the order of the file.
// Source: https://protobuf.dev/programming-guides/encoding/

#include <cstdint>
#include <string>
#include <string_view>

namespace convert {

struct ProtoField {
    enum class Kind { Varint, Fixed64, Bytes, Fixed32 };
    uint32_t number = 0;
    Kind kind = Kind::Varint;
    uint64_t value = 0;      ///< of a number
    std::string_view bytes;  ///< of a string, a message …

    // These throw corrupt_file if the field has another kind.
    std::string_view as_bytes() const;
    uint64_t as_varint() const;
    int32_t as_int32() const { return static_cast<int32_t>(as_varint()); }
    bool as_bool() const { return as_varint() != 0; }
    float as_float() const;
};

class ProtoReader {
  public:
    /// message must outlive this and what fields borrow from it.
    explicit ProtoReader(std::string_view message) : message_(message) {}
    /// The next field; false at the end. Throws corrupt_file for what is cut short or no field.
    bool next(ProtoField& field);

  private:
    uint64_t varint();
    uint64_t fixed(size_t n_bytes);
    std::string_view take(uint64_t n_bytes);

    std::string_view message_;
    size_t at_ = 0;
};

}  // namespace convert
