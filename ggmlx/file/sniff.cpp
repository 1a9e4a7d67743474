#include "ggmlx/file/sniff.h"

#include <algorithm>
#include <string_view>

namespace ggmlx {
namespace {

/// A safetensors file: eight bytes of header length, then the JSON object.
bool looks_like_safetensors(std::string_view head) {
    return head.size() >= 9 && head[8] == '{' && head.substr(4, 4) == std::string_view("\0\0\0\0", 4);
}

bool looks_like_text(std::string_view head) {
    return std::all_of(head.begin(), head.end(),
                       [](unsigned char c) { return c >= 0x20 ? c != 0x7f : c == '\n' || c == '\r' || c == '\t'; });
}

}  // namespace

std::string describe_foreign_file(std::span<const std::byte> bytes) {
    const std::string_view head(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 256));
    if (head.empty()) return "it is empty";
    if (head.starts_with("GGUF") || head.starts_with("FUGG"))
        return "it looks like a GGUF file: convert it with `ggmlx convert`";
    if (looks_like_safetensors(head))
        return "it looks like a safetensors file: convert its folder with `ggmlx convert`";
    if (head.starts_with("PK\3\4")) return "it looks like a zip archive or a PyTorch checkpoint";
    if (head.starts_with("version https://git-lfs"))
        return "it looks like a Git LFS pointer: the real file was not downloaded";
    if (std::all_of(head.begin(), head.end(), [](char c) { return c == 0; }))
        return "it begins with zeros: it was never finished, or the download is incomplete";
    if (looks_like_text(head)) return "it looks like a text file";
    return "it does not begin with the letters GGMX";
}

}  // namespace ggmlx
