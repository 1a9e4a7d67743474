#pragma once
// What tests of config.json share.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "ggmlx/core/error.h"
#include "src/config.h"

namespace llm::test {

/// A published config.json of tests/data/configs.
inline nlohmann::json published(const std::string& model) {
    std::ifstream file(GGMLX_TEST_DATA "/configs/" + model + "/config.json");
    EXPECT_TRUE(file.good()) << model;
    return nlohmann::json::parse(file);
}

inline ModelConfig parse(const nlohmann::json& config) { return ModelConfig::from_json(config.dump()); }

/// The message of the error that parsing ends in; empty if there is none.
inline std::string failure(const nlohmann::json& config, ggmlx::ErrorKind kind) {
    try {
        parse(config);
    } catch (const ggmlx::Error& error) {
        EXPECT_EQ(error.kind(), kind) << error.what();
        return error.what();
    }
    return "";
}
inline std::string corrupt(const nlohmann::json& config) { return failure(config, ggmlx::ErrorKind::CorruptFile); }
inline std::string unsupported(const nlohmann::json& config) { return failure(config, ggmlx::ErrorKind::Unsupported); }

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace llm::test
