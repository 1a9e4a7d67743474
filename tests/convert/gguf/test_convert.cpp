// Whole conversions of GGUF files: values, types, what is refused and how the message helps.

#include <gtest/gtest.h>

#include "convert/convert.h"
#include "convert/gguf/checkpoint.h"
#include "ggmlx/file/reader.h"
#include "ggmlx/quant/quantize.h"
#include "tests/convert/gguf/fixtures.h"
#include "tests/convert/gguf/made_gguf.h"
#include "tests/convert/synthetic.h"

namespace convert {
namespace {

using ggmlx::DType;
using ggmlx::ModelFile;

ConvertOptions options_for(const TempFolder& folder, const std::string& input) {
    ConvertOptions options;
    options.input = input;
    options.output = folder / "model.ggmx";
    options.tool_version = "test";
    return options;
}

std::vector<float> stored_values(const ModelFile& file, const ggmlx::StoredTensor& tensor) {
    const int64_t n_out = tensor.shape.rank() == 2 ? tensor.shape[0] : 1, n_in = tensor.shape[-1];
    std::vector<float> result(static_cast<size_t>(n_out * n_in));
    std::vector<std::byte> raw(tensor.raw_bytes);
    file.read(tensor, raw);
    ggmlx::dequantize_rows(tensor.dtype, raw, n_out, n_in, 0, n_out, result.data());
    return result;
}

/// Metadata and tensors of a llama of one layer, 32 wide, whose matrices are of one type with blocks of 32.
MadeGguf made_llama(GgufType type = GgufType::Q8_0) {
    MadeGguf made;
    made.text("general.architecture", "llama")
        .u32("llama.block_count", 1)
        .u32("llama.context_length", 64)
        .u32("llama.embedding_length", 32)
        .u32("llama.feed_forward_length", 64)
        .u32("llama.attention.head_count", 4)
        .f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    const GgufTypeInfo& info = *find_gguf_type(static_cast<uint32_t>(type));
    auto matrix = [&](const std::string& name, uint64_t n_in, uint64_t n_out) {
        const uint64_t n_blocks = n_out * n_in / static_cast<uint64_t>(info.block_len);
        std::string bytes;
        for (uint64_t i = 0; i < n_blocks; ++i)  // a scale of 2^-6 and some codes
            bytes +=
                std::string("\0\x24", 2) + std::string(static_cast<size_t>(info.block_bytes) - 2, char('a' + i % 7));
        made.tensor(name, {n_in, n_out}, type, bytes);
    };
    auto vector = [&](const std::string& name) {
        made.tensor(name, {32}, GgufType::F32, bytes_of(std::vector<float>(32, 1.0f)));
    };
    matrix("token_embd.weight", 32, 10);
    vector("blk.0.attn_norm.weight");
    for (const char* name : {"q", "k", "v", "output"}) matrix(std::string("blk.0.attn_") + name + ".weight", 32, 32);
    vector("blk.0.ffn_norm.weight");
    matrix("blk.0.ffn_gate.weight", 32, 64);
    matrix("blk.0.ffn_up.weight", 32, 64);
    matrix("blk.0.ffn_down.weight", 64, 32);
    vector("output_norm.weight");
    return made;
}

class GgufFixture : public testing::TestWithParam<const char*> {};

TEST_P(GgufFixture, KeepsEveryTypeAndValue) {
    TempFolder folder;
    const std::string name = GetParam();
    const auto options = options_for(folder, gguf_fixture(name + ".gguf"));
    const Report report = convert(options);
    const auto file = ModelFile::open(options.output);
    const auto source = GgufCheckpoint::open(options.input);
    const auto expected = expected_checksums(name);
    EXPECT_EQ(file.tensors().size(), expected.size());
    for (const auto& tensor : file.tensors()) {
        SCOPED_TRACE(tensor.name);
        EXPECT_EQ(ggmlx::name(tensor.dtype), source.find(tensor.name)->tensor->type->name);
        ASSERT_TRUE(expected.contains(tensor.name));
        EXPECT_EQ(crc32(stored_values(file, tensor)), expected.at(tensor.name));
    }
    for (const TensorReport& tensor : report.tensors) EXPECT_FALSE(tensor.requantized) << tensor.name;
}

INSTANTIATE_TEST_SUITE_P(Fixtures, GgufFixture,
                         testing::Values("llama_bf16", "llama_untied", "llama_quantized", "qwen2", "qwen3_yarn"),
                         [](const auto& fixture) { return fixture.param; });

TEST(GgufConvert, BecomesTheSameModelAsTheHuggingFaceFolder) {
    for (const char* name : {"llama_bf16", "llama_untied", "qwen3_yarn"}) {
        SCOPED_TRACE(name);
        TempFolder folder;
        auto options = options_for(folder, std::string(GGMLX_TEST_DATA) + "/fixtures/" + name);
        options.output = folder / "folder.ggmx";
        convert(options);
        convert(options_for(folder, gguf_fixture(std::string(name) + ".gguf")));
        const auto a = ModelFile::open(folder / "folder.ggmx"), b = ModelFile::open(folder / "model.ggmx");
        ASSERT_EQ(a.tensors().size(), b.tensors().size());
        for (size_t i = 0; i < a.tensors().size(); ++i) {
            EXPECT_EQ(a.tensors()[i].name, b.tensors()[i].name);
            EXPECT_EQ(a.tensors()[i].checksum, b.tensors()[i].checksum) << a.tensors()[i].name;
        }
        const auto from_folder = llm::ModelConfig::from_json(a.document("config.json"));
        const auto from_gguf = llm::ModelConfig::from_json(b.document("config.json"));
        EXPECT_EQ(from_gguf.rope_theta, from_folder.rope_theta);
        EXPECT_EQ(from_gguf.rms_norm_eps, from_folder.rms_norm_eps);
        EXPECT_EQ(from_gguf.n_ctx_train, from_folder.n_ctx_train);
        auto angles = [](const llm::ModelConfig& c) {
            return llm::rope_frequencies(c.rope_theta, c.head_dim, c.rope_scaling).inv_freq;
        };
        EXPECT_EQ(angles(from_gguf), angles(from_folder));
    }
}

TEST(GgufConvert, AnotherTypeForQuantizedTensorsNeedsLeave) {
    TempFolder folder;
    write_file(folder / "made.gguf", made_llama().bytes());
    auto options = options_for(folder, folder / "made.gguf");
    options.recipe.type = DType::Q4_0;
    const std::string message = error_of([&] { convert(options); });
    EXPECT_CONTAINS(message, "--allow-requantize");
    EXPECT_CONTAINS(message, "blk.0.attn_q.weight: q8_0 -> q4_0");
    EXPECT_FALSE(std::filesystem::exists(options.output));
    options.allow_requantize = true;
    for (const TensorReport& tensor : convert(options).tensors)
        EXPECT_EQ(tensor.requantized, tensor.from == "q8_0") << tensor.name;
    EXPECT_EQ(ModelFile::open(options.output).find("blk.0.attn_q.weight")->dtype, DType::Q4_0);

    options.allow_requantize = false;
    for (const DType lossless : {DType::Q8_0, DType::F32}) {
        options.recipe.type = lossless;
        EXPECT_NO_THROW(convert(options)) << ggmlx::name(lossless);
    }
    options.recipe.type = std::nullopt;
    options.recipe.rules = {parse_type_rule("ffn_down=q4_1")};
    EXPECT_CONTAINS(error_of([&] { convert(options); }), "blk.0.ffn_down.weight: q8_0 -> q4_1");
}

TEST(GgufConvert, TypesWithoutAnEqualHereNeedLeave) {
    TempFolder folder;
    write_file(folder / "made.gguf", made_llama(GgufType::Q5_0).bytes());
    auto options = options_for(folder, folder / "made.gguf");
    options.recipe.type = DType::F32;  // nothing is lost
    convert(options);
    const auto exact = ModelFile::open(options.output);
    const auto values = stored_values(exact, *exact.find("blk.0.ffn_down.weight"));
    EXPECT_TRUE(std::any_of(values.begin(), values.end(), [](float v) { return v != 0; }));

    options.recipe.type = std::nullopt;
    const std::string message = error_of([&] { convert(options); });
    EXPECT_CONTAINS(message, "--allow-requantize");
    EXPECT_CONTAINS(message, "token_embd.weight: q5_0 -> q8_0");  // q6_k would need rows of 256
    options.allow_requantize = true;
    options.measure_errors = true;
    const Report report = convert(options);
    EXPECT_EQ(report.source_dtype, "q5_0");
    EXPECT_EQ(ModelFile::open(options.output).find("blk.0.ffn_down.weight")->dtype, DType::Q8_0);
    for (const TensorReport& tensor : report.tensors) EXPECT_EQ(tensor.rmse > 0, tensor.from == "q5_0") << tensor.name;
}

TEST(GgufConvert, TypesThatCannotBeReadAreListed) {
    TempFolder folder;
    write_file(folder / "made.gguf", made_llama(GgufType::Q8_1).bytes());
    auto options = options_for(folder, folder / "made.gguf");
    options.allow_requantize = true;
    const std::string message = error_of([&] { convert(options); });
    EXPECT_CONTAINS(message, "token_embd.weight: q8_1");
    EXPECT_CONTAINS(message, "blk.0.ffn_down.weight: q8_1");
}

TEST(GgufConvert, AccountsForEveryTensor) {
    TempFolder folder;
    auto options = options_for(folder, folder / "made.gguf");
    auto message_for = [&](auto change) {
        MadeGguf made = made_llama();
        change(made);
        write_file(folder / "made.gguf", made.bytes());
        return error_of([&] { convert(options); });
    };
    auto add = [](const char* name) {
        return [name](MadeGguf& m) { m.tensor(name, {2}, GgufType::F32, std::string(8, '\0')); };
    };
    EXPECT_CONTAINS(message_for(add("blk.0.ffn_gate_inp.weight")), "blk.0.ffn_gate_inp.weight");
    EXPECT_CONTAINS(message_for([](MadeGguf& m) { m.tensors.pop_back(); }), "output_norm.weight");
    EXPECT_CONTAINS(message_for([](MadeGguf& m) { m.tensors[2].dims = {16, 64}; }).substr(0, 400), "16 values");
    EXPECT_CONTAINS(message_for([](MadeGguf& m) {
                        m.tensors[2].dims = {64, 16};
                    }),
                    "blk.0.attn_q.weight is [16, 64], expected [32, 32]");

    MadeGguf made = made_llama();
    add("vision.weight")(made);
    add("blk.0.attn_rot_embd.weight")(made);  // known to be needless
    write_file(folder / "made.gguf", made.bytes());
    options.skip = {"vision"};
    EXPECT_CONTAINS(convert(options).notes.at(0), "skipped 1 tensors");
}

TEST(GgufConvert, RefusesWhatTheFamilyCannotSay) {
    TempFolder folder;
    const auto options = options_for(folder, folder / "made.gguf");
    auto message_for = [&](auto change) {
        MadeGguf made = made_llama();
        change(made);
        write_file(folder / "made.gguf", made.bytes());
        return error_of([&] { convert(options); });
    };
    EXPECT_CONTAINS(message_for([](MadeGguf& m) { m.remove("general.architecture"); }), "general.architecture");
    EXPECT_CONTAINS(
        message_for([](MadeGguf& m) { m.remove("general.architecture").text("general.architecture", "mamba"); }),
        "\"mamba\" is not supported; this version reads GGUF files of llama");
    EXPECT_CONTAINS(message_for([](MadeGguf& m) { m.u32("llama.expert_count", 8); }), "Mixture-of-Experts");
    EXPECT_CONTAINS(message_for([](MadeGguf& m) { m.f32("llama.logit_scale", 0.5f); }), "llama.logit_scale is 0.5");
    EXPECT_CONTAINS(message_for([](MadeGguf& m) { m.u32("llama.rope.dimension_count", 4); }), "dimension_count is 4");
    EXPECT_CONTAINS(message_for([](MadeGguf& m) { m.flag("llama.attention.causal", false); }), "attention.causal");
    EXPECT_CONTAINS(message_for([](MadeGguf& m) { m.text("llama.rope.scaling.type", "longrope"); }), "longrope");
    EXPECT_CONTAINS(message_for([](MadeGguf& m) { m.text("llama.rope.scaling.type", "linear"); }), "factor is missing");
    EXPECT_CONTAINS(message_for([](MadeGguf& m) { m.remove("llama.block_count"); }), "has no llama.block_count");
    EXPECT_CONTAINS(
        message_for([](MadeGguf& m) { m.remove("llama.attention.head_count").u32("llama.attention.head_count", 5); }),
        "no multiple of the 5 heads");
    EXPECT_CONTAINS(
        message_for([](MadeGguf& m) {
            m.remove("llama.attention.head_count").array<uint32_t>("llama.attention.head_count", GgufKind::U32, {4, 8});
        }),
        "differs from layer to layer");
    EXPECT_CONTAINS(message_for([](MadeGguf& m) {
                        m.tensor("rope_freqs.weight", {4}, GgufType::F32, bytes_of<float>({1, 1, 3, 2}));
                    }),
                    "Llama 3's rope scaling");
    EXPECT_CONTAINS(message_for([](MadeGguf& m) {
                        m.tensor("rope_freqs.weight", {3}, GgufType::F32, bytes_of<float>({1, 1, 1}));
                    }),
                    "3 factors for heads of 8");
}

llm::ModelConfig config_of(const TempFolder& folder, MadeGguf made, std::vector<std::string>* notes = nullptr) {
    write_file(folder / "made.gguf", made.bytes());
    const auto options = options_for(folder, folder / "made.gguf");
    const Report report = convert(options);
    if (notes) *notes = report.notes;
    return llm::ModelConfig::from_json(ModelFile::open(options.output).document("config.json"));
}

TEST(GgufConvert, MetadataBecomeConfigJson) {
    TempFolder folder;
    const auto plain = config_of(folder, made_llama());
    EXPECT_EQ(plain.architecture, "llama");
    EXPECT_EQ(plain.n_head_kv, 4);
    EXPECT_EQ(plain.head_dim, 8);
    EXPECT_EQ(plain.rms_norm_eps, 1e-5f);
    EXPECT_EQ(plain.rope_theta, 10000.0f);
    EXPECT_EQ(plain.n_vocab, 10);
    EXPECT_TRUE(plain.tie_embeddings);
    EXPECT_FALSE(plain.attention_bias || plain.mlp_bias);

    const auto windowed = config_of(folder, made_llama().u32("llama.attention.sliding_window", 16));
    EXPECT_EQ(windowed.architecture, "mistral");
    EXPECT_EQ(windowed.window, std::vector<int64_t>{16});

    MadeGguf per_layer = made_llama();
    per_layer.array<uint32_t>("llama.attention.head_count_kv", GgufKind::U32, {4}).f32("llama.rope.scale_linear", 4);
    const auto linear = config_of(folder, per_layer);
    EXPECT_EQ(linear.n_head_kv, 4);
    EXPECT_EQ(linear.rope_scaling.kind, llm::RopeScaling::Kind::Linear);
    EXPECT_EQ(linear.rope_scaling.factor, 4.0f);

    std::vector<std::string> notes;
    config_of(folder, made_llama().u32("llama.novelty", 1), &notes);
    EXPECT_CONTAINS(notes.at(0), "llama.novelty");
}

TEST(GgufConvert, ReadsModelsInParts) {
    TempFolder folder;
    MadeGguf whole = made_llama();
    auto part_path = [&](int i) { return folder / ("m-0000" + std::to_string(i) + "-of-00002.gguf"); };
    auto write_parts = [&](uint16_t second_number, int32_t n_tensors) {
        MadeGguf first = made_llama(), second;
        second.tensors.assign(first.tensors.begin() + 5, first.tensors.end());
        first.tensors.resize(5);
        first.key("split.no", GgufKind::U16, MadeGguf::raw(uint16_t{0}))
            .key("split.count", GgufKind::U16, MadeGguf::raw(uint16_t{2}))
            .key("split.tensors.count", GgufKind::I32, MadeGguf::raw(n_tensors));
        second.key("split.no", GgufKind::U16, MadeGguf::raw(second_number))
            .key("split.count", GgufKind::U16, MadeGguf::raw(uint16_t{2}));
        write_file(part_path(1), first.bytes());
        write_file(part_path(2), second.bytes());
    };
    const auto n_tensors = static_cast<int32_t>(whole.tensors.size());
    write_parts(1, n_tensors);
    write_file(folder / "whole.gguf", whole.bytes());
    auto options = options_for(folder, folder / "whole.gguf");
    options.output = folder / "whole.ggmx";
    convert(options);
    options = options_for(folder, part_path(1));
    convert(options);
    EXPECT_EQ(read_file(folder / "whole.ggmx"), read_file(folder / "model.ggmx"));

    EXPECT_CONTAINS(error_of([&] { convert(options_for(folder, part_path(2))); }), "-00001-of-00002.gguf");
    write_parts(1, n_tensors + 1);
    EXPECT_CONTAINS(error_of([&] { convert(options); }), "split.tensors.count");
    write_parts(0, n_tensors);
    EXPECT_CONTAINS(error_of([&] { convert(options); }), "is not part 2 of 2");
    std::filesystem::remove(part_path(2));
    EXPECT_CONTAINS(error_of([&] { convert(options); }), part_path(2));
}

}  // namespace
}  // namespace convert
