#pragma once
// Checkpoints made up in memory, to be damaged by tests and written into a folder of their own.

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "ggmlx/core/error.h"
#include "src/arch/arch.h"

namespace convert {

/// A folder of this test, removed with everything in it.
class TempFolder {
  public:
    TempFolder() {
        const auto* test = testing::UnitTest::GetInstance()->current_test_info();
        path_ = std::filesystem::path(testing::TempDir()) /
                (std::string(test->test_suite_name()) + "." + test->name() + "." + std::to_string(::getpid()));
        std::filesystem::remove_all(path_);
        std::filesystem::create_directories(path_);
    }
    ~TempFolder() { std::filesystem::remove_all(path_); }
    std::string operator/(const std::string& name) const { return (path_ / name).string(); }
    std::string path() const { return path_.string(); }

  private:
    std::filesystem::path path_;
};

inline void write_file(const std::string& path, std::string_view bytes) {
    std::ofstream file(path, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    ASSERT_TRUE(file.good()) << path;
}

inline std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    EXPECT_TRUE(file.good()) << path;
    return {std::istreambuf_iterator<char>(file), {}};
}

struct MadeTensor {
    std::string name, dtype;
    std::vector<int64_t> shape;
    std::string bytes;
};

template <class Value>
std::string bytes_of(const std::vector<Value>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value)};
}

inline MadeTensor f32_tensor(std::string name, std::vector<int64_t> shape, const std::vector<float>& values) {
    return {std::move(name), "F32", std::move(shape), bytes_of(values)};
}

/// The bytes of a .safetensors file: length, JSON, data.
inline std::string raw_safetensors(const std::string& header, const std::string& data) {
    const uint64_t n = header.size();
    return std::string(reinterpret_cast<const char*>(&n), sizeof n) + header + data;
}

inline std::string safetensors(const std::vector<MadeTensor>& tensors) {
    nlohmann::ordered_json header = {{"__metadata__", {{"format", "pt"}}}};
    std::string data;
    for (const MadeTensor& t : tensors) {
        header[t.name] = {
            {"dtype", t.dtype}, {"shape", t.shape}, {"data_offsets", {data.size(), data.size() + t.bytes.size()}}};
        data += t.bytes;
    }
    return raw_safetensors(header.dump(), data);
}

inline std::vector<float> random_values(int64_t n, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0f, 0.05f);
    std::vector<float> values(static_cast<size_t>(n));
    for (float& v : values) v = normal(random);
    return values;
}

/// A llama of two layers with random float32 weights and a tokenizer of a few tokens.
struct MadeCheckpoint {
    nlohmann::json config = {{"model_type", "llama"},      {"num_hidden_layers", 2},   {"hidden_size", 64},
                             {"num_attention_heads", 4},   {"num_key_value_heads", 2}, {"intermediate_size", 96},
                             {"vocab_size", 40},           {"head_dim", 16},           {"max_position_embeddings", 128},
                             {"tie_word_embeddings", true}};
    std::vector<MadeTensor> tensors;
    std::vector<std::pair<std::string, std::string>> documents;

    MadeCheckpoint() { fill(); }
    /// Makes the tensors that config asks for, except those that lie in tensors of others.
    void fill() {
        tensors.clear();
        const auto c = llm::ModelConfig::from_json(config.dump());
        unsigned seed = 1;
        for (const auto& spec : llm::architecture(c.architecture).tensors(c)) {
            const bool stacked = spec.shape.rank() > 2;
            const std::vector<int64_t> shape(spec.shape.dims().begin() + (stacked ? 1 : 0), spec.shape.dims().end());
            for (const std::string& source : spec.sources)
                tensors.push_back(f32_tensor(
                    source, shape, random_values(spec.shape.n_elements() / (stacked ? spec.shape[0] : 1), seed++)));
        }
    }
    MadeTensor& at(const std::string& name) {
        for (MadeTensor& t : tensors)
            if (t.name == name) return t;
        ggmlx::fail(ggmlx::ErrorKind::InvalidArgument, "no tensor {}", name);
    }
    void remove(const std::string& name) {
        std::erase_if(tensors, [&](const MadeTensor& t) { return t.name == name; });
    }
    void write(const std::string& folder) const {
        write_documents(folder);
        write_file(folder + "/model.safetensors", safetensors(tensors));
    }
    /// Dealt out to shards one by one, with an index.
    void write_sharded(const std::string& folder, size_t n_shards) const {
        write_documents(folder);
        std::vector<std::vector<MadeTensor>> shards(n_shards);
        nlohmann::json index = {{"metadata", {{"total_size", 0}}}, {"weight_map", nlohmann::json::object()}};
        for (size_t i = 0; i < tensors.size(); ++i) {
            shards[i % n_shards].push_back(tensors[i]);
            index["weight_map"][tensors[i].name] = shard_name(i % n_shards);
        }
        for (size_t i = 0; i < n_shards; ++i) write_file(folder + "/" + shard_name(i), safetensors(shards[i]));
        write_file(folder + "/model.safetensors.index.json", index.dump());
    }
    static std::string shard_name(size_t i) { return "model-" + std::to_string(i) + ".safetensors"; }

  private:
    void write_documents(const std::string& folder) const {
        write_file(folder + "/config.json", config.dump());
        for (const auto& [name, text] : documents) write_file(folder + "/" + name, text);
    }
};

/// The message of the ggmlx::Error that f ends in; fails the test if there is none.
template <class F>
std::string error_of(F&& f) {
    try {
        f();
    } catch (const ggmlx::Error& error) {
        return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
}

#define EXPECT_CONTAINS(text, part) \
    EXPECT_NE(std::string(text).find(part), std::string::npos) << "wanted \"" << (part) << "\" in: " << (text)

}  // namespace convert
