// make_tokenizer_seeds FOLDER: the tests' small tokenizers, each with a text, for the fuzz target of the tokenizer to
// start from.

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace {

using nlohmann::json;

std::string read_seed_source(const std::string& name) {
    std::ifstream in(std::string(GGMLX_TEST_DATA) + "/tokenizers/" + name, std::ios::binary);
    if (!in) throw std::runtime_error("cannot read " + name);
    return {std::istreambuf_iterator<char>(in), {}};
}

void write_seed(const std::string& path, const std::string& rules, const std::string& text) {
    std::ofstream(path, std::ios::binary) << rules << '\0' << text;
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc != 2) {
        std::fputs("usage: make_tokenizer_seeds FOLDER\n", stderr);
        return 2;
    }
    const std::string folder = std::string(argv[1]) + "/";
    std::filesystem::create_directories(folder);
    int number = 0;
    for (const json& entry : json::parse(read_seed_source("small.json"))) {
        const json& last = entry["cases"].back();
        write_seed(folder + "small" + std::to_string(number++), entry["tokenizer"].dump(), last[0].get<std::string>());
    }
    // Every kind of construct on a tiny model.
    const json constructs = json::parse(read_seed_source("constructs.json"));
    for (const char* kind : {"normalizers", "pre_tokenizers", "decoders"})
        for (const json& row : constructs[kind]) {
            json tree = json::parse(R"({"added_tokens": [], "model": {"type": "BPE", "unk_token": "a",
                "vocab": {"a": 0, "b": 1, "ab": 2, " ": 3}, "merges": ["a b"]}})");
            tree[std::string(kind).substr(0, std::string(kind).size() - 1)] = row[0];
            write_seed(folder + kind + std::to_string(number++), tree.dump(), "a b 1\xC3\xA9 ab");
        }
    write_seed(folder + "unigram", read_seed_source("unigram.json"), "naive text");
    write_seed(folder + "sentencepiece", read_seed_source("sp_bpe.model"), "some text");
    write_seed(folder + "sentencepiece_unigram", read_seed_source("sp_unigram.model"), "some text");
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
