#include "convert/tokenizer/protobuf.h"

#include <bit>

#include "ggmlx/core/error.h"

namespace convert {

using ggmlx::ErrorKind;
using ggmlx::fail;
using ggmlx::require;

namespace {

void require_kind(const ProtoField& field, ProtoField::Kind kind) {
    require(field.kind == kind, ErrorKind::CorruptFile, "protocol buffer: field {} has the wrong type", field.number);
}

}  // namespace

std::string_view ProtoField::as_bytes() const {
    require_kind(*this, Kind::Bytes);
    return bytes;
}

uint64_t ProtoField::as_varint() const {
    require_kind(*this, Kind::Varint);
    return value;
}

float ProtoField::as_float() const {
    require_kind(*this, Kind::Fixed32);
    return std::bit_cast<float>(static_cast<uint32_t>(value));
}

std::string_view ProtoReader::take(uint64_t n_bytes) {
    require(n_bytes <= message_.size() - at_, ErrorKind::CorruptFile,
            "protocol buffer: cut short: {} bytes at {} of {}", n_bytes, at_, message_.size());
    const std::string_view bytes = message_.substr(at_, static_cast<size_t>(n_bytes));
    at_ += bytes.size();
    return bytes;
}

uint64_t ProtoReader::fixed(size_t n_bytes) {
    const std::string_view bytes = take(n_bytes);
    uint64_t value = 0;
    for (size_t i = n_bytes; i > 0; --i) value = (value << 8) | static_cast<unsigned char>(bytes[i - 1]);
    return value;
}

uint64_t ProtoReader::varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        const auto byte = static_cast<unsigned char>(take(1)[0]);
        value |= uint64_t{byte & 0x7Fu} << shift;
        if (byte < 0x80) return value;
    }
    fail(ErrorKind::CorruptFile, "protocol buffer: a number of more than 64 bits at {}", at_);
}

bool ProtoReader::next(ProtoField& field) {
    if (at_ == message_.size()) return false;
    const size_t begin = at_;
    const uint64_t key = varint();
    field = {};
    field.number = static_cast<uint32_t>(key >> 3);
    require(key >> 3 >= 1 && key >> 3 < (uint64_t{1} << 29), ErrorKind::CorruptFile,
            "protocol buffer: field number {} at {}", key >> 3, begin);
    switch (key & 7) {
        case 0:
            field.kind = ProtoField::Kind::Varint;
            field.value = varint();
            break;
        case 1:
            field.kind = ProtoField::Kind::Fixed64;
            field.value = fixed(8);
            break;
        case 2:
            field.kind = ProtoField::Kind::Bytes;
            field.bytes = take(varint());
            break;
        case 5:
            field.kind = ProtoField::Kind::Fixed32;
            field.value = fixed(4);
            break;
        default:
            fail(ErrorKind::CorruptFile, "protocol buffer: field of type {} at {}", key & 7, begin);
    }
    return true;
}

}  // namespace convert
