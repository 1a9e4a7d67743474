// Whole conversions in-process: values, accounting for every tensor, tied embeddings, tokenizers, refusals.

#include "convert/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "convert/checkpoint.h"
#include "ggmlx/file/reader.h"
#include "ggmlx/quant/quantize.h"
#include "tests/convert/synthetic.h"

namespace convert {
namespace {

using ggmlx::DType;
using ggmlx::ModelFile;

ConvertOptions options_for(const TempFolder& folder, std::optional<DType> type = {}) {
    ConvertOptions options;
    options.input = folder.path();
    options.output = folder / "model.ggmx";
    options.recipe.type = type;
    options.tool_version = "test";
    return options;
}

std::vector<float> values(const ModelFile& file, const std::string& name) {
    const auto* tensor = file.find(name);
    EXPECT_TRUE(tensor) << name;
    if (!tensor) return {};
    const int64_t n_out = tensor->shape.rank() == 2 ? tensor->shape[0] : 1, n_in = tensor->shape[-1];
    std::vector<float> result(static_cast<size_t>(n_out * n_in));
    std::vector<std::byte> raw(tensor->raw_bytes);
    file.read(*tensor, raw);
    ggmlx::dequantize_rows(tensor->dtype, raw, n_out, n_in, 0, n_out, result.data());
    return result;
}

std::vector<float> source_values(const MadeTensor& tensor) {
    std::vector<float> result(tensor.bytes.size() / sizeof(float));
    std::memcpy(result.data(), tensor.bytes.data(), tensor.bytes.size());
    return result;
}

bool nothing_written(const TempFolder& folder) {
    return !std::filesystem::exists(folder / "model.ggmx") && !std::filesystem::exists(folder / "model.ggmx.partial");
}

std::string tokenizer_json(const std::vector<int>& ids, const std::vector<int>& added = {}) {
    nlohmann::json root = {{"model", {{"type", "BPE"}, {"vocab", nlohmann::json::object()}, {"merges", {"a b"}}}},
                           {"added_tokens", nlohmann::json::array()}};
    for (int id : ids) root["model"]["vocab"]["t" + std::to_string(id)] = id;
    for (int id : added) root["added_tokens"].push_back({{"id", id}, {"content", "<" + std::to_string(id) + ">"}});
    return root.dump();
}

TEST(Convert, KeepsEveryValueInTheSourcesOwnType) {
    TempFolder folder;
    MadeCheckpoint made;
    made.write(folder.path());
    const Report report = convert(options_for(folder));
    const auto file = ModelFile::open(folder / "model.ggmx");
    EXPECT_EQ(file.tensors().size(), made.tensors.size());
    EXPECT_EQ(values(file, "token_embd.weight"), source_values(made.at("model.embed_tokens.weight")));
    EXPECT_EQ(values(file, "blk.1.ffn_down.weight"), source_values(made.at("model.layers.1.mlp.down_proj.weight")));
    EXPECT_EQ(values(file, "blk.0.attn_k.weight"), source_values(made.at("model.layers.0.self_attn.k_proj.weight")));
    EXPECT_EQ(values(file, "output_norm.weight"), source_values(made.at("model.norm.weight")));
    EXPECT_EQ(file.document("config.json"), made.config.dump());
    EXPECT_EQ(report.file_bytes, file.size_bytes());
    EXPECT_EQ(report.source_dtype, "f32");
    EXPECT_EQ(report.summary.total().n_tensors, static_cast<int64_t>(made.tensors.size()));
}

TEST(Convert, GivesTheBytesOfQuantizeMatrixWhateverTheThreads) {
    TempFolder folder;
    MadeCheckpoint made;
    made.config["vocab_size"] = 16500;  // more than one chunk of rows
    made.fill();
    made.write(folder.path());
    const auto source = source_values(made.at("model.embed_tokens.weight"));
    std::vector<std::byte> expected(static_cast<size_t>(ggmlx::slice_bytes(DType::Q4_0, {16500, 64})));
    ggmlx::quantize_matrix(DType::Q4_0, source.data(), 16500, 64, expected);
    for (int n_threads : {1, 3}) {
        auto options = options_for(folder, DType::Q4_0);
        options.n_threads = n_threads;
        convert(options);
        const auto file = ModelFile::open(options.output);
        const auto stored = file.stored_bytes(*file.find("token_embd.weight"));
        EXPECT_TRUE(std::equal(stored.begin(), stored.end(), expected.begin(), expected.end()));
    }
}

TEST(Convert, ReadsHalfFloatsAndShards) {
    TempFolder folder;
    MadeCheckpoint made;
    auto& norm = made.at("model.norm.weight");
    norm.dtype = "BF16";
    norm.bytes = bytes_of(std::vector<uint16_t>(64, 0x3fc0));  // 1.5
    auto& q = made.at("model.layers.0.self_attn.q_proj.weight");
    q.dtype = "F16";
    q.bytes = bytes_of(std::vector<uint16_t>(64 * 64, 0xc100));  // -2.5
    made.write_sharded(folder.path(), 3);
    convert(options_for(folder));
    const auto file = ModelFile::open(folder / "model.ggmx");
    EXPECT_EQ(values(file, "output_norm.weight"), std::vector<float>(64, 1.5f));
    EXPECT_EQ(values(file, "blk.0.attn_q.weight"), std::vector<float>(64 * 64, -2.5f));
    EXPECT_EQ(file.find("blk.0.attn_q.weight")->dtype, DType::F16);
    EXPECT_EQ(file.find("output_norm.weight")->dtype, DType::F32);
}

TEST(Convert, ReadsFp8WithBlockScales) {
    TempFolder folder;
    MadeCheckpoint made;
    made.config["quantization_config"] = {{"quant_method", "fp8"}, {"weight_block_size", {48, 40}}};
    auto& q = made.at("model.layers.0.self_attn.q_proj.weight");
    q.dtype = "F8_E4M3";
    q.bytes = std::string(64 * 64, '\x38');  // 1.0
    made.tensors.push_back(
        f32_tensor("model.layers.0.self_attn.q_proj.weight_scale_inv", {2, 2}, {0.5f, 2.0f, 4.0f, 0.25f}));
    made.write(folder.path());
    convert(options_for(folder));
    const auto file = ModelFile::open(folder / "model.ggmx");
    const auto stored = values(file, "blk.0.attn_q.weight");
    EXPECT_EQ(file.find("blk.0.attn_q.weight")->dtype, DType::BF16);
    EXPECT_EQ(stored[0], 0.5f);
    EXPECT_EQ(stored[47 * 64 + 40], 2.0f);
    EXPECT_EQ(stored[48 * 64 + 39], 4.0f);
    EXPECT_EQ(stored[63 * 64 + 63], 0.25f);

    made.remove("model.layers.0.self_attn.q_proj.weight_scale_inv");
    made.write(folder.path());
    EXPECT_CONTAINS(error_of([&] { convert(options_for(folder)); }), "scales");
}

TEST(Convert, NamesAllUnknownTensorsAtOnceOrSkipsThem) {
    TempFolder folder;
    MadeCheckpoint made;
    made.tensors.push_back(f32_tensor("model.layers.0.extra.weight", {1}, {1}));
    made.tensors.push_back(f32_tensor("vision.proj.weight", {1}, {1}));
    made.tensors.push_back(f32_tensor("model.layers.0.self_attn.rotary_emb.inv_freq", {1}, {1}));  // known, not needed
    made.write(folder.path());
    auto options = options_for(folder);
    const std::string message = error_of([&] { convert(options); });
    EXPECT_CONTAINS(message, "2 tensors");
    EXPECT_CONTAINS(message, "model.layers.0.extra.weight");
    EXPECT_CONTAINS(message, "vision.proj.weight");
    EXPECT_EQ(message.find("inv_freq"), std::string::npos);
    EXPECT_TRUE(nothing_written(folder));

    options.skip = {"^vision\\.", "extra"};
    const Report report = convert(options);
    ASSERT_GE(report.notes.size(), 2u);
    EXPECT_CONTAINS(report.notes[0], "skipped 1 tensors by --skip ^vision\\.");
    options.skip = {"visoin", "extra", "vision"};
    EXPECT_CONTAINS(error_of([&] { convert(options); }), "\"visoin\" matches no unneeded tensor");
    options.skip = {"vision", "extra", "q_proj"};  // a needed tensor cannot be skipped
    EXPECT_CONTAINS(error_of([&] { convert(options); }), "\"q_proj\" matches no unneeded tensor");
}

TEST(Convert, NamesAllMissingAndMisshapenTensorsAtOnce) {
    TempFolder folder;
    MadeCheckpoint made;
    made.remove("model.norm.weight");
    made.remove("model.layers.1.mlp.up_proj.weight");
    made.write(folder.path());
    std::string message = error_of([&] { convert(options_for(folder)); });
    EXPECT_CONTAINS(message, "2 tensors");
    EXPECT_CONTAINS(message, "model.norm.weight");
    EXPECT_CONTAINS(message, "model.layers.1.mlp.up_proj.weight");

    made.fill();
    made.at("model.layers.0.self_attn.k_proj.weight").shape = {64, 32};
    made.at("model.norm.weight").shape = {8, 8};
    made.write(folder.path());
    message = error_of([&] { convert(options_for(folder)); });
    EXPECT_CONTAINS(message, "k_proj.weight is [64, 32], expected [32, 64]");
    EXPECT_CONTAINS(message, "model.norm.weight is [8, 8], expected [64]");
    EXPECT_TRUE(nothing_written(folder));
}

TEST(Convert, StoresATiedEmbeddingOnce) {
    TempFolder folder;
    MadeCheckpoint made;
    made.tensors.push_back(made.at("model.embed_tokens.weight"));
    made.tensors.back().name = "lm_head.weight";
    made.write(folder.path());
    Report report = convert(options_for(folder));
    EXPECT_CONTAINS(report.notes.at(0), "lm_head.weight equals model.embed_tokens.weight and is stored once");
    EXPECT_EQ(ModelFile::open(folder / "model.ggmx").find("output.weight"), nullptr);

    made.tensors.back().bytes[5] ^= 1;  // different: transformers uses the embedding, and so do we, with a warning
    made.write(folder.path());
    report = convert(options_for(folder));
    EXPECT_CONTAINS(report.notes.at(0), "warning: lm_head.weight differs");
    const auto file = ModelFile::open(folder / "model.ggmx");
    EXPECT_EQ(file.find("output.weight"), nullptr);
    EXPECT_EQ(values(file, "token_embd.weight"), source_values(made.at("model.embed_tokens.weight")));
}

TEST(Convert, WantsAHeadUnlessEmbeddingsAreTied) {
    for (bool absent : {true, false}) {
        TempFolder folder;
        MadeCheckpoint made;
        if (absent)
            made.config.erase("tie_word_embeddings");
        else
            made.config["tie_word_embeddings"] = false;
        made.write(folder.path());  // filled while tied
        const std::string message = error_of([&] { convert(options_for(folder)); });
        EXPECT_CONTAINS(message, "lm_head.weight");
        EXPECT_CONTAINS(message, "tie_word_embeddings");
        made.fill();
        made.write(folder.path());
        convert(options_for(folder));
        EXPECT_TRUE(ModelFile::open(folder / "model.ggmx").find("output.weight"));
    }
}

TEST(Convert, ComparesTokenizerAndEmbedding) {
    TempFolder folder;
    MadeCheckpoint made;
    made.config["vocab_size"] = 12;
    made.fill();
    made.documents = {{"tokenizer.json", tokenizer_json({0, 1, 2, 3, 4, 5, 6, 7, 8, 9})}};
    made.write(folder.path());
    EXPECT_CONTAINS(convert(options_for(folder)).notes.at(0), "10 tokens and the embedding 12 rows");

    made.documents = {{"tokenizer.json", tokenizer_json({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {11})}};  // a gap at 10
    made.write(folder.path());
    EXPECT_CONTAINS(convert(options_for(folder)).notes.at(0), "11 tokens and the embedding 12 rows");

    made.documents = {{"tokenizer.json", tokenizer_json({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {12})}};
    made.write(folder.path());
    std::filesystem::remove(folder / "model.ggmx");
    const std::string message = error_of([&] { convert(options_for(folder)); });
    EXPECT_CONTAINS(message, "ids up to 12");
    EXPECT_CONTAINS(message, "12 rows");
    EXPECT_TRUE(nothing_written(folder));
}

TEST(Convert, CarriesDocumentsVerbatim) {
    TempFolder folder;
    MadeCheckpoint made;
    const std::string odd = "{\"a\":1,\r\n \"\xc3\xa9\" : [ ] }\n";
    made.documents = {{"generation_config.json", odd},
                      {"special_tokens_map.json", "{}"},
                      {"tokenizer.json", tokenizer_json({0, 1})},
                      {"tokenizer_config.json", R"({"chat_template": "{{ messages }}"})"},
                      {"README.md", "not for us"}};
    made.write(folder.path());
    auto options = options_for(folder, DType::Q8_0);
    options.recipe.rules = {parse_type_rule("ffn=q4_0")};
    convert(options);
    {
        const auto file = ModelFile::open(options.output);
        EXPECT_EQ(file.document("generation_config.json"), odd);
        EXPECT_EQ(file.document("tokenizer.json"), tokenizer_json({0, 1}));
        EXPECT_EQ(file.document("chat_template.jinja"), "{{ messages }}");
        EXPECT_FALSE(file.has_document("README.md"));
        const auto origin = nlohmann::json::parse(file.document("quantization.json"));
        EXPECT_EQ(origin["type"], "q8_0");
        EXPECT_EQ(origin["source_dtype"], "f32");
        EXPECT_EQ(origin["rules"], nlohmann::json({"ffn=q4_0"}));
        EXPECT_EQ(origin["types"]["q4_0"]["tensors"], 6);
        EXPECT_EQ(origin["tool_version"], "test");
    }
    made.documents.push_back({"chat_template.jinja", "own file"});
    made.write(folder.path());
    convert(options);
    EXPECT_EQ(ModelFile::open(options.output).document("chat_template.jinja"), "own file");
}

TEST(Convert, NamesThePlaceOfAValueThatIsNotFinite) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        TempFolder folder;
        MadeCheckpoint made;
        auto& tensor = made.at("model.layers.1.mlp.gate_proj.weight");  // [96, 64]
        std::memcpy(tensor.bytes.data() + (37 * 64 + 11) * sizeof(float), &bad, sizeof bad);
        made.write(folder.path());
        for (auto type : {DType::F32, DType::Q4_0}) {
            const std::string message = error_of([&] { convert(options_for(folder, type)); });
            EXPECT_CONTAINS(message, "model.layers.1.mlp.gate_proj.weight");
            EXPECT_CONTAINS(message, "row 37, column 11");
            EXPECT_TRUE(nothing_written(folder));
        }
    }
}

TEST(Convert, RefusesF16ForValuesBeyondItsRange) {
    TempFolder folder;
    MadeCheckpoint made;
    const float large = 70000.0f;
    std::memcpy(made.at("model.layers.0.mlp.up_proj.weight").bytes.data(), &large, sizeof large);
    made.write(folder.path());
    EXPECT_CONTAINS(error_of([&] { convert(options_for(folder, DType::F16)); }), "which f16 cannot hold");
    EXPECT_NO_THROW(convert(options_for(folder, DType::BF16)));
}

TEST(Convert, DryRunTellsTheSizeAndWritesNothing) {
    TempFolder folder;
    MadeCheckpoint().write(folder.path());
    auto options = options_for(folder, DType::Q4_K);
    options.dry_run = true;
    const Report dry = convert(options);
    EXPECT_TRUE(nothing_written(folder));
    options.dry_run = false;
    const Report wet = convert(options);
    EXPECT_EQ(dry.file_bytes, wet.file_bytes);
    EXPECT_EQ(wet.tensors.at(0).wanted, DType::Q4_K);
    EXPECT_EQ(wet.tensors.at(0).dtype, DType::Q4_1);
}

TEST(Convert, CompressedTensorsExpandToTheSameBytes) {
    TempFolder folder;
    MadeCheckpoint made;
    made.write(folder.path());
    auto options = options_for(folder, DType::Q8_0);
    convert(options);
    options.output = folder / "small.ggmx";
    options.compress = true;
    convert(options);
    const auto plain = ModelFile::open(folder / "model.ggmx"), small = ModelFile::open(folder / "small.ggmx");
    ASSERT_EQ(plain.tensors().size(), small.tensors().size());
    for (const auto& tensor : plain.tensors()) {
        EXPECT_TRUE(small.find(tensor.name)->compressed) << tensor.name;
        EXPECT_EQ(values(plain, tensor.name), values(small, tensor.name)) << tensor.name;
    }
}

TEST(Convert, RefusesToWriteOverItsInput) {
    TempFolder folder;
    MadeCheckpoint made;
    made.write(folder.path());
    auto options = options_for(folder);
    options.output = folder.path();
    EXPECT_CONTAINS(error_of([&] { convert(options); }), "is a folder");
    std::filesystem::create_hard_link(folder / "model.safetensors", folder / "link.ggmx");
    for (const char* name : {"model.safetensors", "link.ggmx"}) {
        options.output = folder / name;
        EXPECT_CONTAINS(error_of([&] { convert(options); }), "is the input");
    }
    EXPECT_EQ(read_file(folder / "model.safetensors"), safetensors(made.tensors));
}

TEST(Convert, LeavesNothingBehindWhenDocumentsAreBroken) {
    TempFolder folder;
    MadeCheckpoint made;
    for (const auto& [name, text] : std::vector<std::pair<std::string, std::string>>{
             {"tokenizer.json", "{"},
             {"tokenizer.json", "{}"},
             {"tokenizer.json", R"({"model": {"vocab": {"a": -1}}})"},
             {"tokenizer.json", R"({"model": {"vocab": {"a": 4294967297}}})"},
             {"tokenizer_config.json", "[}"}}) {
        made.documents = {{"tokenizer.json", tokenizer_json({0})}};
        if (name == "tokenizer.json") made.documents.clear();
        made.documents.push_back({name, text});
        made.write(folder.path());
        EXPECT_CONTAINS(error_of([&] { convert(options_for(folder)); }), name);
        EXPECT_TRUE(nothing_written(folder));
    }
}

// A trained model: errors of the types against its float32 weights are small, and ordered by their bits.
TEST(Convert, MeasuresTheErrorOfTypesOnATrainedModel) {
    TempFolder folder;
    double last = 1;
    for (const DType type : {DType::Q4_0, DType::Q4_1, DType::Q8_0, DType::F16, DType::F32}) {
        auto options = options_for(folder, type);
        options.input = GGMLX_TEST_DATA "/stories260k";
        options.measure_errors = true;
        double squares = 0;
        int64_t n = 0;
        for (const auto& t : convert(options).tensors) {
            squares += t.rmse * t.rmse;
            ++n;
        }
        const double rmse = std::sqrt(squares / static_cast<double>(n));
        EXPECT_LT(rmse, last) << ggmlx::name(type);
        last = rmse;
    }
    EXPECT_EQ(last, 0.0);
}

}  // namespace
}  // namespace convert
