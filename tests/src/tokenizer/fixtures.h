#pragma once
// Files that the tokenizer's tests read.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/tokenizer/tokenizer.h"

namespace llm::test {

inline std::string read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    EXPECT_TRUE(in.good()) << "cannot read " << path;
    return {std::istreambuf_iterator<char>(in), {}};
}

/// A file of tests/data/tokenizers; made by make_fixtures.py there.
inline std::string read_fixture(const std::string& name) {
    return read_file(std::string(GGMLX_TEST_DATA) + "/tokenizers/" + name);
}
inline nlohmann::json fixture(const std::string& name) { return nlohmann::json::parse(read_fixture(name)); }

inline std::vector<std::string> corpus() { return fixture("corpus.json").get<std::vector<std::string>>(); }

/// The folder with tokenizers whose licence keeps them out of the repository: $GGMLX_SHARED_DATA, or shared/data beside
/// the repository.
inline std::optional<std::string> shared_data() {
    const char* variable = std::getenv("GGMLX_SHARED_DATA");
    const std::string path = variable ? variable : std::string(GGMLX_SOURCE_DIR) + "/../shared/data";
    return std::filesystem::is_directory(path) ? std::optional(path) : std::nullopt;
}

/// The pieces of a stream put together.
inline std::string streamed(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, bool skip_special) {
    TokenStream stream(tokenizer, skip_special);
    std::string text;
    for (const TokenId id : ids) text += stream.push(id);
    return text + stream.finish();
}

}  // namespace llm::test
