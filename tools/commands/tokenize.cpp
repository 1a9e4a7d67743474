// ggmlx tokenize: text -> token ids, and what each of them stands for; with --decode ids -> text.

#include <fmt/format.h>

#include <cctype>
#include <cstdio>
#include <iostream>
#include <limits>

#include "ggmlx/core/error.h"
#include "tools/args.h"
#include "tools/commands/commands.h"
#include "tools/json_text.h"
#include "tools/text_input.h"
#include "tools/tokenizer_source.h"

namespace cli {
namespace {

using ggmlx::ErrorKind;
using nlohmann::json;
using Ids = std::vector<llm::TokenId>;

struct TokenizeOptions {
    std::string source, text, file;
    bool decode = false, lines = false, ids_only = false, no_special = false, plain = false;
    Common common;
};

json parse_json(std::string_view text, std::string_view where) {
    json value = json::parse(text, nullptr, false);
    ggmlx::require(!value.is_discarded(), ErrorKind::InvalidArgument, "{}: not valid JSON: {}", where,
                   text.substr(0, 60));
    return value;
}

Ids ids_of(const json& value, std::string_view where) {
    ggmlx::require(value.is_array(), ErrorKind::InvalidArgument, "{}: not a list of token ids", where);
    Ids ids;
    for (const json& id : value) {
        ggmlx::require(id.is_number_integer() && id >= 0 && id <= std::numeric_limits<llm::TokenId>::max(),
                       ErrorKind::InvalidArgument, "{}: {} is no token id", where, id.dump());
        ids.push_back(id.get<llm::TokenId>());
    }
    return ids;
}

/// A JSON list, or numbers with blanks or commas between.
Ids parse_ids(const std::string& text) {
    const size_t first = text.find_first_not_of(" \t\r\n");
    if (first != text.npos && text[first] == '[') return ids_of(parse_json(text, "ids"), "ids");
    std::string list = "[";
    for (const char c : text) {
        const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0 || c == ',';
        if (!blank)
            list += c;
        else if (list.back() != ',' && list.back() != '[')
            list += ',';
    }
    if (list.back() == ',') list.pop_back();
    return ids_of(parse_json(list + "]", "ids"), "ids");
}

class TokenizeCommand {
  public:
    explicit TokenizeCommand(const TokenizeOptions& options)
        : options_(options), tokenizer_(open_tokenizer(options.source)) {}

    void run() const {
        if (options_.lines) return run_lines();
        const bool from_input = !options_.file.empty() || options_.text.empty() || options_.text == "-";
        const std::string text = from_input ? read_text(options_.file.empty() ? "-" : options_.file) : options_.text;
        if (options_.decode) return print_text(decode(parse_ids(text)));
        print_tokens(encode(text));
    }

  private:
    Ids encode(std::string_view text) const {
        return tokenizer_.encode(text, {.add_special = !options_.no_special, .parse_special = !options_.plain});
    }
    std::string decode(const Ids& ids) const { return tokenizer_.decode(ids, options_.no_special); }

    /// One JSON value a line in, one a line out, each as soon as it is known.
    void run_lines() const {
        std::string line;
        for (size_t number = 1; std::getline(std::cin, line); ++number) {
            const std::string where = fmt::format("line {} of standard input", number);
            const json value = parse_json(line, where);
            if (options_.decode) {
                fmt::print("{}\n", json_line(decode(ids_of(value, where))));
            } else {
                ggmlx::require(value.is_string(), ErrorKind::InvalidArgument, "{}: not a JSON string", where);
                const Ids ids = encode(value.get<std::string>());
                options_.common.json ? print_tokens(ids) : print_ids(ids);
            }
            std::fflush(stdout);
        }
    }

    void print_text(const std::string& text) const {
        if (options_.common.json)
            fmt::print("{}\n", json_line({{"text", text}}));
        else
            fmt::print("{}\n", text);
    }
    void print_ids(const Ids& ids) const { fmt::print("[{}]\n", fmt::join(ids, ", ")); }
    void print_tokens(const Ids& ids) const {
        if (options_.ids_only) return print_ids(ids);
        std::vector<std::string> pieces;
        for (const llm::TokenId id : ids) pieces.push_back(tokenizer_.id_to_token(id));
        if (options_.common.json) {
            fmt::print("{}\n", json_line({{"ids", ids}, {"pieces", pieces}}));
        } else {
            for (size_t i = 0; i < ids.size(); ++i) fmt::print("{:>7}  {}\n", ids[i], json_line(pieces[i]));
        }
    }

    const TokenizeOptions& options_;
    llm::Tokenizer tokenizer_;
};

}  // namespace

int run_tokenize(std::span<const std::string> arguments) {
    TokenizeOptions options;
    Args args("tokenize", "Shows the tokens of a text, or the text of tokens.",
              "  ggmlx tokenize model.ggmx \"Once upon a time\"\n"
              "  ggmlx tokenize ./Qwen3-0.6B --ids-only < text.txt\n"
              "  ggmlx tokenize tokenizer.json --decode \"[9906, 1917]\"\n"
              "  ggmlx tokenize tokenizer.json --jsonl < strings.jsonl > ids.jsonl\n");
    args.model(options.source, "a .ggmx, a checkpoint folder, a tokenizer.json or a tokenizer.model");
    args.positional("TEXT", options.text, "the text (with --decode: ids); without it, or for \"-\", standard input");
    args.option("-f,--file", options.file, "FILE", "the text from a file");
    args.flag(
        "--jsonl", options.lines,
        "standard input has a JSON string on every line; print a list of ids for each (with --decode: the other way)");
    args.flag("--decode", options.decode, "ids in, text out: [1, 2] or 1 2");
    args.flag("--ids-only", options.ids_only, "print the ids alone, as one list");
    args.flag("--no-special,--no-bos", options.no_special,
              "add no special tokens (BOS, EOS); with --decode leave out all special tokens");
    args.flag("--no-parse-special", options.plain, "special tokens written in the text are plain text");
    args.common(options.common);
    if (!args.parse(arguments)) return 0;
    const bool has_text = !options.text.empty(), has_file = !options.file.empty();
    if (int{has_text} + int{has_file} + int{options.lines} > 1)
        throw UsageError("give a text, -f or --jsonl, only one");
    TokenizeCommand(options).run();
    return 0;
}

}  // namespace cli
