#include "tools/safetensors_io.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "convert/safetensors.h"
#include "ggmlx/core/error.h"

namespace cli {

using ggmlx::ErrorKind;
using ggmlx::require;

void write_safetensors(const std::string& path, std::span<const TensorToSave> tensors) {
    auto header = nlohmann::ordered_json::object();
    size_t offset = 0;
    for (const TensorToSave& t : tensors) {
        header[t.name] = {{"dtype", t.dtype == ggmlx::DType::I32 ? "I32" : "F32"},
                          {"shape", std::vector<int64_t>(t.shape.dims().begin(), t.shape.dims().end())},
                          {"data_offsets", {offset, offset + t.bytes.size()}}};
        offset += t.bytes.size();
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');  // data begins at a multiple of 8
    const uint64_t size = text.size();
    char prefix[8];
    for (int i = 0; i < 8; ++i) prefix[i] = static_cast<char>((size >> (8 * i)) & 0xff);

    errno = 0;
    std::ofstream file(path, std::ios::binary);
    file.write(prefix, sizeof prefix);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    for (const TensorToSave& t : tensors)
        file.write(reinterpret_cast<const char*>(t.bytes.data()), static_cast<std::streamsize>(t.bytes.size()));
    file.close();
    require(file.good(), ErrorKind::Io, "{}: cannot write it: {}", path, std::strerror(errno));
}

std::vector<llm::TokenId> read_safetensors_ids(const std::string& path, std::string_view name) {
    const auto file = convert::SafetensorsFile::open(path);
    const convert::SourceTensor* tensor = file.find(name);
    require(tensor != nullptr && tensor->type == convert::SourceType::I32 && tensor->shape.size() == 1,
            ErrorKind::CorruptFile, "{}: there is no I32 tensor `{}` of one dimension", path, name);
    const auto bytes = file.data(*tensor);
    std::vector<llm::TokenId> ids(bytes.size() / sizeof(llm::TokenId));
    std::memcpy(ids.data(), bytes.data(), ids.size() * sizeof(llm::TokenId));
    return ids;
}

}  // namespace cli
