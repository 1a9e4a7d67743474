#include "tools/tokenizer_source.h"

#include <filesystem>

#include "convert/gguf/file.h"
#include "convert/gguf/tokenizer.h"
#include "convert/tokenizer/files.h"
#include "tools/model_path.h"
#include "tools/text_input.h"

namespace cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTokenizerConfig = "tokenizer_config.json";

convert::ReadFile reader_of(const fs::path& folder) {
    return [folder](std::string_view name) -> std::optional<std::string> {
        const fs::path path = folder / name;
        std::error_code ignored;
        return fs::is_regular_file(path, ignored) ? std::optional(read_text(path.string())) : std::nullopt;
    };
}

llm::Tokenizer gguf_tokenizer(const std::string& path) {
    const auto file = convert::GgufFile::open(path);
    std::vector<std::string> notes;
    const std::string text = convert::gguf_tokenizer_json(file.metadata(), notes);
    ggmlx::require(!text.empty(), ggmlx::ErrorKind::Unsupported, "{}: there is no tokenizer in the file", path);
    return llm::Tokenizer::from_json(text, convert::gguf_tokenizer_config_json(file.metadata()));
}

}  // namespace

llm::Tokenizer open_tokenizer(const std::string& path) {
    using ggmlx::ErrorKind;
    if (is_model_file(path)) {
        const auto file = open_model(path);
        ggmlx::require(file.has_document("tokenizer.json"), ErrorKind::Unsupported,
                       "{}: the model has no tokenizer.json", path);
        return llm::Tokenizer::from_json(file.document("tokenizer.json"),
                                         file.has_document(kTokenizerConfig) ? file.document(kTokenizerConfig) : "");
    }
    if (fs::path(path).extension() == ".gguf") return gguf_tokenizer(path);
    std::error_code ignored;
    const bool is_folder = fs::is_directory(path, ignored);
    const auto read = reader_of(is_folder ? fs::path(path) : fs::path(path).parent_path());
    const std::string name = fs::path(path).filename().string();
    const auto json =
        is_folder ? convert::tokenizer_document(read) : convert::tokenizer_document(name, read_text(path), read);
    ggmlx::require(json.has_value(), ErrorKind::Unsupported,
                   "{}: there is no tokenizer in the folder (tokenizer.json, tokenizer.model, tekken.json …)", path);
    return llm::Tokenizer::from_json(*json, read(kTokenizerConfig).value_or(""));
}

}  // namespace cli
