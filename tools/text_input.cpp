#include "tools/text_input.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "ggmlx/core/error.h"
#include "tools/safetensors_io.h"

namespace cli {
namespace {

using ggmlx::ErrorKind;
using ggmlx::require;

std::vector<llm::TokenId> ids_from_json(const std::string& path, const std::string& text) {
    const auto list = nlohmann::json::parse(text, nullptr, false);
    require(list.is_array(), ErrorKind::CorruptFile,
            "{}: neither a JSON array of token ids nor a .safetensors with a tensor `ids`", path);
    std::vector<llm::TokenId> ids;
    for (const auto& value : list) {
        const bool fits = value.is_number_integer() && value >= 0 && value <= INT32_MAX;
        require(fits, ErrorKind::CorruptFile, "{}: element {} is no token id", path, ids.size());
        ids.push_back(value.get<llm::TokenId>());
    }
    return ids;
}

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace

bool stdin_is_terminal() { return isatty(STDIN_FILENO) == 1; }

std::string read_text(const std::string& path) {
    if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    require(file.good() || file.eof(), ErrorKind::Io, "{}: cannot read it: {}", path, std::strerror(errno));
    return text;
}

std::vector<llm::TokenId> read_ids(const std::string& path) {
    if (path.ends_with(".safetensors")) return read_safetensors_ids(path, "ids");
    return ids_from_json(path, read_text(path));
}

std::string unescape(std::string_view text) {
    constexpr std::string_view kLetters = "ntre0\\'\"", kMeanings{"\n\t\r\x1b\0\\'\"", 8};
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        const size_t left = text.size() - i;
        if (text[i] != '\\' || left < 2) {
            out += text[i];
        } else if (const size_t k = kLetters.find(text[i + 1]); k != kLetters.npos) {
            out += kMeanings[k];
            ++i;
        } else if (text[i + 1] == 'x' && left >= 4 && hex_digit(text[i + 2]) >= 0 && hex_digit(text[i + 3]) >= 0) {
            out += static_cast<char>(hex_digit(text[i + 2]) * 16 + hex_digit(text[i + 3]));
            i += 3;
        } else {
            out += text[i];
        }
    }
    return out;
}

void PromptFlags::add_to(Args& args) {
    args.option("-p,--prompt", prompt, "TEXT", "the prompt; \"-\" reads standard input, as does a pipe without -p");
    args.option("-f,--file", file, "FILE", "the prompt from a file");
    args.option("--ids", ids_file, "FILE",
                "token ids instead: a JSON array, or the I32 tensor `ids` of a .safetensors");
    args.flag("-e,--escape", escape, "\\n, \\t, \\x41 … in -p and --stop mean what they mean in C");
    args.flag("--no-bos", no_bos, "add no special tokens (BOS) to the text");
}

std::optional<std::string> PromptFlags::text() const {
    if (!prompt.empty() && prompt != "-") return escape ? unescape(prompt) : prompt;
    if (!file.empty()) return read_text(file);
    if (prompt == "-" || !stdin_is_terminal()) return read_text("-");
    return std::nullopt;
}

std::vector<llm::TokenId> PromptFlags::tokens(const llm::Model& model) const {
    if (!prompt.empty() + !file.empty() + !ids_file.empty() > 1)
        throw UsageError("give one of -p, -f and --ids, not several");
    if (!ids_file.empty()) return read_ids(ids_file);
    if (const std::string t = text().value_or(""); !t.empty())
        return model.tokenizer().encode(t, {.add_special = !no_bos, .parse_special = true});
    const auto bos = model.generation().bos_id;
    if (!bos) throw UsageError("the model has no BOS token to start from: give a prompt with -p, -f or --ids");
    return {*bos};
}

}  // namespace cli
