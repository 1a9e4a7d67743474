#pragma once
// The files of tests/data/gguf and what the `gguf` package says of them.

#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace convert {

inline std::string gguf_fixture(const std::string& name) { return std::string(GGMLX_TEST_DATA) + "/gguf/" + name; }

/// CRC-32 of every tensor's values, by our name.
inline std::map<std::string, uint32_t> expected_checksums(const std::string& file) {
    std::ifstream in(gguf_fixture("expected.json"));
    return nlohmann::json::parse(in).at(file).get<std::map<std::string, uint32_t>>();
}

/// Of the bytes of float32 values, as zlib computes it.
inline uint32_t crc32(std::span<const float> values) {
    uint32_t crc = 0xffffffffu;
    for (const std::byte byte : std::as_bytes(values)) {
        crc ^= std::to_integer<uint32_t>(byte);
        for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    }
    return ~crc;
}

}  // namespace convert
