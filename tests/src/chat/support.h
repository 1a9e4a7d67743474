#pragma once
// What the tests of chat templates share.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "ggmlx/core/error.h"
#include "src/chat/date.h"
#include "src/chat/template.h"

namespace llm::test {

using nlohmann::ordered_json;

inline std::string read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    EXPECT_TRUE(in.good()) << "cannot read " << path;
    return {std::istreambuf_iterator<char>(in), {}};
}

inline const std::string kTemplates = GGMLX_TEST_DATA "/chat-templates/";

/// The folder with templates whose licence keeps them out of the repository: $GGMLX_SHARED_DATA, or shared/data beside
/// the repository.
inline std::optional<std::string> shared_templates() {
    const char* variable = std::getenv("GGMLX_SHARED_DATA");
    const std::string path =
        (variable ? variable : std::string(GGMLX_SOURCE_DIR) + "/../shared/data") + "/chat-templates/";
    return std::filesystem::is_directory(path) ? std::optional(path) : std::nullopt;
}

inline RenderOptions on_date(std::string_view date) {
    RenderOptions options;
    options.now = parse_date(date);
    return options;
}

inline std::string render(const std::string& source, const ordered_json& variables = ordered_json::object(),
                          const RenderOptions& options = {}) {
    return ChatTemplate::parse(source, "test").render(variables, options).text;
}

/// The message of the error that parsing or rendering gives.
inline std::string error_of(const std::string& source, const ordered_json& variables = ordered_json::object(),
                            const RenderOptions& options = {}) {
    try {
        return "rendered: " + render(source, variables, options);
    } catch (const ggmlx::Error& error) {
        return error.what();
    }
}

}  // namespace llm::test
