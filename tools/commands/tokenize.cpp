// ggmlx tokenize: text -> token ids, and what each of them stands for.

#include <fmt/format.h>

#include <filesystem>

#include "src/tokenizer/tokenizer.h"
#include "tools/args.h"
#include "tools/commands/commands.h"
#include "tools/json_text.h"
#include "tools/model_path.h"
#include "tools/text_input.h"

namespace cli {
namespace {

namespace fs = std::filesystem;

/// From a .ggmx, a checkpoint folder, or a tokenizer.json with its tokenizer_config.json beside it.
llm::Tokenizer open_tokenizer(const std::string& path) {
    if (is_model_file(path)) {
        const auto file = open_model(path);
        const char* config = "tokenizer_config.json";
        ggmlx::require(file.has_document("tokenizer.json"), ggmlx::ErrorKind::Unsupported,
                       "{}: the model has no tokenizer.json", path);
        return llm::Tokenizer::from_json(file.document("tokenizer.json"),
                                         file.has_document(config) ? file.document(config) : "");
    }
    const fs::path json = fs::is_directory(path) ? fs::path(path) / "tokenizer.json" : fs::path(path);
    const fs::path config = json.parent_path() / "tokenizer_config.json";
    return llm::Tokenizer::from_json(read_text(json.string()), fs::exists(config) ? read_text(config.string()) : "");
}

void print_ids(std::span<const llm::TokenId> ids) { fmt::print("[{}]\n", fmt::join(ids, ", ")); }

}  // namespace

int run_tokenize(std::span<const std::string> arguments) {
    std::string path, text, file;
    bool ids_only = false, no_bos = false, plain = false;
    Common common;
    Args args("tokenize", "Shows the tokens of a text.",
              "  ggmlx tokenize model.ggmx \"Once upon a time\"\n"
              "  ggmlx tokenize ./Qwen3-0.6B --ids-only < text.txt\n");
    args.model(path, "a .ggmx, a checkpoint folder or a tokenizer.json");
    args.positional("TEXT", text, "the text; without it, or for \"-\", standard input");
    args.option("-f,--file", file, "FILE", "the text from a file");
    args.flag("--ids-only", ids_only, "print the ids alone, as one list");
    args.flag("--no-bos", no_bos, "add no special tokens (BOS)");
    args.flag("--no-parse-special", plain, "special tokens written in the text are plain text");
    args.common(common);
    if (!args.parse(arguments)) return 0;

    const llm::Tokenizer tokenizer = open_tokenizer(path);
    if (!file.empty() && !text.empty()) throw UsageError("give a text or -f, not both");
    if (!file.empty() || text.empty() || text == "-") text = read_text(file.empty() ? "-" : file);
    const auto ids = tokenizer.encode(text, {.add_special = !no_bos, .parse_special = !plain});
    std::vector<std::string> pieces;
    for (llm::TokenId id : ids) pieces.push_back(tokenizer.id_to_token(id));
    if (common.json) {
        fmt::print("{}\n", json_line({{"ids", ids}, {"pieces", pieces}}));
    } else if (ids_only) {
        print_ids(ids);
    } else {
        for (size_t i = 0; i < ids.size(); ++i) fmt::print("{:>7}  {}\n", ids[i], json_line(pieces[i]));
    }
    return 0;
}

}  // namespace cli
