// Checkpoints whose files disagree: found before a tensor is read, and everything wrong is named at once.

#include <gtest/gtest.h>

#include "convert/checkpoint.h"
#include "convert/matrix_source.h"
#include "tests/convert/synthetic.h"

namespace convert {
namespace {

namespace fs = std::filesystem;

TEST(Checkpoint, OpensAFolderAFileAndShards) {
    TempFolder folder;
    MadeCheckpoint made;
    made.write(folder.path());
    EXPECT_EQ(Checkpoint::open(folder.path()).tensors().size(), made.tensors.size());
    const auto single = Checkpoint::open(folder / "model.safetensors");
    EXPECT_EQ(single.tensors().size(), made.tensors.size());
    EXPECT_TRUE(single.document("config.json").has_value());
    EXPECT_FALSE(single.document("tokenizer.json").has_value());

    fs::remove(folder / "model.safetensors");
    made.write_sharded(folder.path(), 3);
    const auto sharded = Checkpoint::open(folder.path());
    EXPECT_EQ(sharded.tensors().size(), made.tensors.size());
    EXPECT_EQ(sharded.weight_files().size(), 3u);
}

TEST(Checkpoint, ListsEveryMissingShardAndHowManyTensorsItHolds) {
    TempFolder folder;
    MadeCheckpoint made;
    made.write_sharded(folder.path(), 4);
    fs::remove(folder / MadeCheckpoint::shard_name(1));
    fs::remove(folder / MadeCheckpoint::shard_name(3));
    const std::string message = error_of([&] { Checkpoint::open(folder.path()); });
    EXPECT_CONTAINS(message, "model-1.safetensors (5 tensors)");  // 20 tensors dealt out to 4 shards
    EXPECT_CONTAINS(message, "model-3.safetensors (5 tensors)");
    EXPECT_CONTAINS(message, "10 tensors");
    EXPECT_EQ(message.find("model-0"), std::string::npos);
}

TEST(Checkpoint, ComparesIndexAndShardsInBothDirections) {
    TempFolder folder;
    MadeCheckpoint made;
    made.write_sharded(folder.path(), 2);
    const std::string index_path = folder / "model.safetensors.index.json";
    const auto index = nlohmann::json::parse(read_file(index_path));

    auto claims_too_much = index;
    claims_too_much["weight_map"]["mtp.fc.weight"] = "model-1.safetensors";
    write_file(index_path, claims_too_much.dump());
    EXPECT_CONTAINS(error_of([&] { Checkpoint::open(folder.path()); }), "mtp.fc.weight: the index says model-1");

    auto says_too_little = index;
    says_too_little["weight_map"].erase("model.norm.weight");
    write_file(index_path, says_too_little.dump());
    EXPECT_CONTAINS(error_of([&] { Checkpoint::open(folder.path()); }), "model.norm.weight: in model-");

    auto swapped = index;
    auto& shard = swapped["weight_map"]["model.norm.weight"];
    shard = shard == "model-0.safetensors" ? "model-1.safetensors" : "model-0.safetensors";
    write_file(index_path, swapped.dump());
    EXPECT_CONTAINS(error_of([&] { Checkpoint::open(folder.path()); }), "which does not hold it");
}

TEST(Checkpoint, RefusesAnIndexThatPointsElsewhere) {
    TempFolder folder;
    for (const char* shard : {"../other.safetensors", "/etc/passwd", "..", ""}) {
        write_file(folder / "model.safetensors.index.json", nlohmann::json{{"weight_map", {{"t", shard}}}}.dump());
        EXPECT_CONTAINS(error_of([&] { Checkpoint::open(folder.path()); }), "no plain file name");
    }
    for (const char* index : {"{", "[]", "{}", R"({"weight_map": {}})", R"({"weight_map": {"t": 1}})"}) {
        write_file(folder / "model.safetensors.index.json", index);
        EXPECT_THROW(Checkpoint::open(folder.path()), ggmlx::Error) << index;
    }
}

TEST(Checkpoint, SaysHowMuchOfATruncatedShardIsThere) {
    TempFolder folder;
    MadeCheckpoint made;
    made.write_sharded(folder.path(), 2);
    const std::string shard = folder / MadeCheckpoint::shard_name(1);
    const auto whole = fs::file_size(shard);
    for (const uintmax_t size : {whole - 1, whole - 4096, uintmax_t{8}}) {
        fs::resize_file(shard, size);
        const std::string message = error_of([&] { Checkpoint::open(folder.path()); });
        EXPECT_CONTAINS(message, "model-1.safetensors");
        EXPECT_CONTAINS(message, "is the download complete?");
    }
}

TEST(Checkpoint, ExplainsFoldersWithoutWeights) {
    TempFolder folder;
    EXPECT_CONTAINS(error_of([&] { Checkpoint::open(folder.path()); }), "no checkpoint");
    EXPECT_CONTAINS(error_of([&] { Checkpoint::open(folder / "nosuch"); }), "does not exist");
    write_file(folder / "pytorch_model.bin", "PK");
    EXPECT_CONTAINS(error_of([&] { Checkpoint::open(folder.path()); }), "pickled");
    write_file(folder / "consolidated.safetensors", safetensors({}));
    EXPECT_CONTAINS(error_of([&] { Checkpoint::open(folder.path()); }), "consolidated.safetensors");
}

/// [129, 130] in blocks of 128 x 128: a grid of [2, 2] with narrow edges.
std::vector<MadeTensor> fp8_weight(const std::string& scale_dtype, const std::string& scale_bytes) {
    std::string codes;
    for (int i = 0; i < 129 * 130; ++i) codes += static_cast<char>(i % 127);  // every finite code from 0 on
    return {{"w.weight", "F8_E4M3", {129, 130}, codes}, {"w.weight_scale_inv", scale_dtype, {2, 2}, scale_bytes}};
}

Checkpoint open_made(const TempFolder& folder, const std::vector<MadeTensor>& tensors) {
    write_file(folder / "w.safetensors", safetensors(tensors));
    return Checkpoint::open(folder / "w.safetensors");
}

TEST(MatrixSource, AppliesBlockScalesUpToTheEdges) {
    TempFolder folder;
    const auto checkpoint = open_made(folder, fp8_weight("F32", bytes_of<float>({0.5f, 3.0f, 0.25f, 8.0f})));
    const MatrixSource source(checkpoint, "w.weight", {128, 128});
    std::vector<float> rows(2 * 130);
    source.read_rows(127, 2, rows.data());
    auto code = [](int64_t row, int64_t col) { return static_cast<int>((row * 130 + col) % 127); };
    // OCP E4M3 by hand: (1 + m / 8) * 2^(e - 7), or m / 8 * 2^-6 when e is 0.
    auto value = [](int c) {
        const int e = c >> 3, m = c & 7;
        return e == 0 ? static_cast<float>(m) / 512.0f
                      : (1.0f + static_cast<float>(m) / 8.0f) * std::ldexp(1.0f, e - 7);
    };
    EXPECT_EQ(rows[0], value(code(127, 0)) * 0.5f);            // scale (0, 0)
    EXPECT_EQ(rows[127], value(code(127, 127)) * 0.5f);        // scale (0, 0)
    EXPECT_EQ(rows[128], value(code(127, 128)) * 3.0f);        // scale (0, 1)
    EXPECT_EQ(rows[130], value(code(128, 0)) * 0.25f);         // scale (1, 0)
    EXPECT_EQ(rows[130 + 129], value(code(128, 129)) * 8.0f);  // scale (1, 1)
}

TEST(MatrixSource, ReadsE8M0ScalesAsPowersOfTwo) {
    TempFolder folder;
    const auto checkpoint = open_made(folder, fp8_weight("F8_E8M0", std::string("\x78\x7f\x80\x7f", 4)));
    const MatrixSource source(checkpoint, "w.weight", {128, 128});
    std::vector<float> row(130);
    source.read_rows(0, 1, row.data());
    EXPECT_EQ(row[8], 0x1p-6f * 0x1p-7f);  // code 8 is 2^-6, scale byte 120 is 2^-7
    source.read_rows(128, 1, row.data());
    EXPECT_EQ(row[1], 4.0f / 512.0f * 2.0f);  // code 4 is 4/512, scale byte 128 is 2
}

TEST(MatrixSource, RefusesScalesWithoutWeightsAndWeightsWithoutScales) {
    TempFolder folder;
    auto tensors = fp8_weight("F32", bytes_of<float>({1, 1, 1, 1}));
    tensors[1].name = "other";
    EXPECT_CONTAINS(error_of([&] {
                        MatrixSource(open_made(folder, tensors), "w.weight", {128, 128});
                    }),
                    "scales \"w.weight_scale_inv\" are missing");
    tensors = fp8_weight("F32", bytes_of<float>({1, 1, 1, 1}));
    EXPECT_CONTAINS(error_of([&] { MatrixSource(open_made(folder, tensors), "w.weight", {}); }), "weight_block_size");
    EXPECT_CONTAINS(error_of([&] { MatrixSource(open_made(folder, tensors), "w.weight", {64, 128}); }), "needs [3, 2]");
    tensors[0] = f32_tensor("w.weight", {1, 2}, {1, 2});
    EXPECT_CONTAINS(error_of([&] {
                        MatrixSource(open_made(folder, tensors), "w.weight", {128, 128});
                    }),
                    "there are scales for it");
}

TEST(MatrixSource, RefusesTypesThatAreNoWeights) {
    TempFolder folder;
    const std::vector<MadeTensor> tensors = {{"w.weight", "I32", {1, 2}, std::string(8, '\0')}};
    EXPECT_CONTAINS(error_of([&] { MatrixSource(open_made(folder, tensors), "w.weight", {}); }), "I32");
}

TEST(ScaleBlock, ComesFromQuantizationConfig) {
    EXPECT_EQ(scale_block_of("{}").n_rows, 0);
    EXPECT_EQ(scale_block_of(R"({"quantization_config": null})").n_rows, 0);
    const auto block =
        scale_block_of(R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 64]}})");
    EXPECT_EQ(block.n_rows, 128);
    EXPECT_EQ(block.n_cols, 64);
    EXPECT_CONTAINS(error_of([] { scale_block_of(R"({"quantization_config": {"quant_method": "awq"}})"); }), "awq");
    EXPECT_THROW(scale_block_of(R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [0, 64]}})"),
                 ggmlx::Error);
}

}  // namespace
}  // namespace convert
