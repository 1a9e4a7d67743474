// tokenize_lines TOKENIZER.json [TOKENIZER_CONFIG.json] < lines of JSON strings
// For scripts/compare_tokenizers.py: encodes every line and prints a JSON object with its ids, their text with and
// without special tokens, and the text as TokenStream gives it, in pieces. tokenize_lines --time TOKENIZER.json FILE:
// prints the processor time of loading, encoding and decoding.

#include <cstdio>
#include <ctime>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "src/tokenizer/tokenizer.h"

namespace {

using llm::Tokenizer;
using nlohmann::json;

std::string read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error("cannot read " + path);
    return {std::istreambuf_iterator<char>(in), {}};
}

json pieces_of(const Tokenizer& tokenizer, const std::vector<llm::TokenId>& ids) {
    llm::TokenStream stream(tokenizer, false);
    json pieces = json::array();
    for (const llm::TokenId id : ids) pieces.push_back(stream.push(id));
    pieces.push_back(stream.finish());
    return pieces;
}

void encode_lines(const Tokenizer& tokenizer) {
    for (std::string line; std::getline(std::cin, line);) {
        const auto text = json::parse(line).get<std::string>();
        const auto ids = tokenizer.encode(text);
        const json result = {{"ids", ids},
                             {"all", tokenizer.decode(ids, false)},
                             {"visible", tokenizer.decode(ids, true)},
                             {"pieces", pieces_of(tokenizer, ids)}};
        std::cout << result.dump() << '\n';
    }
}

/// Seconds of processor time since the last call.
double lap() {
    static std::clock_t last = std::clock();
    const std::clock_t before = std::exchange(last, std::clock());
    return static_cast<double>(last - before) / CLOCKS_PER_SEC;
}

void measure(const std::string& tokenizer_path, const std::string& text_path) {
    const std::string rules = read_file(tokenizer_path), text = read_file(text_path);
    lap();
    const Tokenizer tokenizer = Tokenizer::from_json(rules);
    const double load = lap();
    const auto ids = tokenizer.encode(text);
    const double encode = lap();
    const bool same = tokenizer.decode(ids) == text;
    std::printf("load %.3f s, encode %.3f s (%zu bytes, %zu ids), decode %.3f s (%s)\n", load, encode, text.size(),
                ids.size(), lap(), same ? "the same text" : "another text");
}

}  // namespace

int main(int argc, char** argv) try {
    const std::vector<std::string> args(argv + 1, argv + argc);
    if (args.size() == 3 && args[0] == "--time") {
        measure(args[1], args[2]);
    } else if (args.size() == 1 || args.size() == 2) {
        encode_lines(Tokenizer::from_json(read_file(args[0]), args.size() == 2 ? read_file(args[1]) : ""));
    } else {
        std::cerr << "usage: tokenize_lines TOKENIZER.json [TOKENIZER_CONFIG.json] < lines\n";
        return 2;
    }
    return 0;
} catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
