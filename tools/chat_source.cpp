#include "tools/chat_source.h"

#include <filesystem>

#include "ggmlx/core/error.h"
#include "tools/model_path.h"
#include "tools/text_input.h"

namespace cli {
namespace {

namespace fs = std::filesystem;

std::string read_if_there(const fs::path& path) { return fs::exists(path) ? read_text(path.string()) : ""; }

llm::ChatFiles folder_files(const fs::path& folder) {
    return {.tokenizer_config = read_if_there(folder / "tokenizer_config.json"),
            .chat_template = read_if_there(folder / "chat_template.jinja"),
            .chat_template_json = read_if_there(folder / "chat_template.json"),
            .special_tokens_map = read_if_there(folder / "special_tokens_map.json")};
}

}  // namespace

llm::ChatFiles chat_files(const ggmlx::ModelFile& file) {
    const auto document = [&](const char* name) { return file.has_document(name) ? file.document(name) : ""; };
    return {.tokenizer_config = document("tokenizer_config.json"),
            .chat_template = document("chat_template.jinja"),
            .chat_template_json = document("chat_template.json"),
            .special_tokens_map = document("special_tokens_map.json")};
}

llm::ChatFormat open_chat_format(const std::string& source) {
    const fs::path path(source);
    if (fs::is_directory(path)) return llm::ChatFormat::from_files(folder_files(path), source);
    if (is_model_file(source)) return llm::ChatFormat::from_files(chat_files(open_model(source)), source);
    llm::ChatFiles files = folder_files(path.parent_path());
    const std::string text = read_text(source);
    if (path.extension() == ".json") {
        const bool own = path.filename() == "chat_template.json";
        files.chat_template.clear();
        (own ? files.chat_template_json : files.tokenizer_config) = text;
    } else {
        ggmlx::require(
            path.extension() != ".safetensors" && path.extension() != ".gguf", ggmlx::ErrorKind::InvalidArgument,
            "{} is no template; give a .ggmx, a checkpoint's folder, a tokenizer_config.json or a .jinja file", source);
        files = {.tokenizer_config = files.tokenizer_config,
                 .chat_template = text,
                 .chat_template_json = "",
                 .special_tokens_map = files.special_tokens_map};
    }
    return llm::ChatFormat::from_files(files, source);
}

}  // namespace cli
