// How experts and latent attention get from checkpoints into a model file: one tensor per expert or one for all,
// floats, FP8 and packed MXFP4; and layers that are left out.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "convert/checkpoint.h"
#include "convert/convert.h"
#include "ggmlx/file/reader.h"
#include "ggmlx/quant/blocks.h"
#include "ggmlx/quant/quantize.h"
#include "tests/convert/synthetic.h"

namespace convert {
namespace {

using ggmlx::DType;
using ggmlx::ModelFile;

std::string fixture(const std::string& name) { return std::string(GGMLX_TEST_DATA) + "/fixtures/" + name; }

Report convert_to(const std::string& input, const std::string& output, std::optional<DType> type = {}) {
    ConvertOptions options;
    options.input = input;
    options.output = output;
    options.recipe.type = type;
    options.tool_version = "test";
    return convert(options);
}

/// All values of a tensor, matrix after matrix.
std::vector<float> all_values(const ModelFile& file, const std::string& name) {
    const auto* tensor = file.find(name);
    EXPECT_TRUE(tensor) << name;
    if (!tensor) return {};
    const int rank = tensor->shape.rank();
    const int64_t n_in = tensor->shape[-1], n_out = rank > 1 ? tensor->shape[-2] : 1,
                  n = rank > 2 ? tensor->shape[0] : 1;
    std::vector<std::byte> raw(tensor->raw_bytes);
    file.read(*tensor, raw);
    const auto slice = static_cast<size_t>(ggmlx::slice_bytes(tensor->dtype, tensor->shape));
    const size_t stride = tensor->expert_stride && rank > 2 ? tensor->expert_stride : slice;
    std::vector<float> result(static_cast<size_t>(n * n_out * n_in));
    for (int64_t i = 0; i < n; ++i)
        ggmlx::dequantize_rows(tensor->dtype, std::span(raw).subspan(static_cast<size_t>(i) * stride, slice), n_out,
                               n_in, 0, n_out, result.data() + i * n_out * n_in);
    return result;
}

std::vector<float> source_floats(const Checkpoint& checkpoint, const std::string& name) {
    const auto* entry = checkpoint.find(name);
    EXPECT_TRUE(entry) << name;
    const auto bytes = entry->file->data(*entry->tensor);
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
}

std::span<const std::byte> source_bytes(const Checkpoint& checkpoint, const std::string& name) {
    const auto* entry = checkpoint.find(name);
    EXPECT_TRUE(entry) << name;
    return entry->file->data(*entry->tensor);
}

/// Codes and scales of a stored mxfp4 stack, looked up one by one, against those of the packed checkpoint.
void expect_same_codes(const ModelFile& file, const std::string& name, const Checkpoint& checkpoint,
                       const std::string& source, int64_t first_row, int64_t row_step) {
    const auto* tensor = file.find(name);
    ASSERT_TRUE(tensor) << name;
    ASSERT_EQ(tensor->dtype, DType::MXFP4) << name;
    const auto stored = file.stored_bytes(*tensor);
    const auto blocks = source_bytes(checkpoint, source + "_blocks"),
               scales = source_bytes(checkpoint, source + "_scales");
    const int64_t n_expert = tensor->shape[0], n_out = tensor->shape[1], n_blocks = tensor->shape[2] / 32;
    for (int64_t e = 0; e < n_expert; ++e)
        for (int64_t r = 0; r < n_out; ++r)
            for (int64_t b = 0; b < n_blocks; ++b) {
                const int64_t block = (e * n_out * row_step + first_row + r * row_step) * n_blocks + b;
                const auto* tile = reinterpret_cast<const ggmlx::TileMXFP4*>(
                                       stored.data() + static_cast<size_t>(e) * tensor->expert_stride) +
                                   r / 16 * n_blocks + b;
                ASSERT_EQ(tile->e[r % 16], std::to_integer<uint8_t>(scales[static_cast<size_t>(block)]));
                for (int k = 0; k < 32; ++k) {
                    const auto byte = std::to_integer<int>(blocks[static_cast<size_t>(block * 16 + k / 2)]);
                    ASSERT_EQ(ggmlx::nibble(tile->q, static_cast<int>(r % 16), k), k % 2 ? byte >> 4 : byte & 15);
                }
            }
}

TEST(ConvertExperts, KeepsPackedMxfp4BitByBit) {
    TempFolder folder;
    const Report report = convert_to(fixture("gpt_oss_packed"), folder / "model.ggmx");
    const auto file = ModelFile::open(folder / "model.ggmx");
    const auto checkpoint = Checkpoint::open(fixture("gpt_oss_packed"));
    const std::string experts = "model.layers.0.mlp.experts.";
    expect_same_codes(file, "blk.0.ffn_gate_exps.weight", checkpoint, experts + "gate_up_proj", 0, 2);
    expect_same_codes(file, "blk.0.ffn_up_exps.weight", checkpoint, experts + "gate_up_proj", 1, 2);
    expect_same_codes(file, "blk.0.ffn_down_exps.weight", checkpoint, experts + "down_proj", 0, 1);
    EXPECT_EQ(file.find("blk.0.attn_q.weight")->dtype, DType::F32);
    EXPECT_EQ(report.source_dtype, "mxfp4");
}

TEST(ConvertExperts, ReadsPackedAndFloatGptOssAlike) {
    TempFolder folder;
    convert_to(fixture("gpt_oss_packed"), folder / "packed.ggmx", DType::F32);
    convert_to(fixture("gpt_oss_unpacked"), folder / "floats.ggmx", DType::F32);
    const auto packed = ModelFile::open(folder / "packed.ggmx"), floats = ModelFile::open(folder / "floats.ggmx");
    ASSERT_EQ(packed.tensors().size(), floats.tensors().size());
    for (const auto& tensor : packed.tensors())
        EXPECT_EQ(all_values(packed, tensor.name), all_values(floats, tensor.name)) << tensor.name;
    // And these are the numbers of the script that made them: up of expert 2 is every second output.
    const auto checkpoint = Checkpoint::open(fixture("gpt_oss_unpacked"));
    const auto source = source_floats(checkpoint, "model.layers.0.mlp.experts.gate_up_proj");  // [3, 64, 192]
    const auto bias = source_floats(checkpoint, "model.layers.0.mlp.experts.gate_up_proj_bias");
    const auto up = all_values(packed, "blk.0.ffn_up_exps.weight"),
               up_bias = all_values(packed, "blk.0.ffn_up_exps.bias");
    for (size_t r = 0; r < 96; ++r) {
        for (size_t c = 0; c < 64; ++c)
            ASSERT_EQ(up[(2 * 96 + r) * 64 + c], source[(2 * 64 + c) * 192 + 2 * r + 1]) << r << ", " << c;
        EXPECT_EQ(up_bias[2 * 96 + r], bias[2 * 192 + 2 * r + 1]);
    }
}

TEST(ConvertExperts, RefusesDamagedPackedTensors) {
    for (const char* part : {"_scales", "_blocks"}) {
        TempFolder folder;
        const auto checkpoint = Checkpoint::open(fixture("gpt_oss_packed"));
        std::vector<MadeTensor> tensors;
        for (const auto& [name, entry] : checkpoint.tensors()) {
            const auto bytes = entry.file->data(*entry.tensor);
            tensors.push_back({name, std::string(convert::name(entry.tensor->type)), entry.tensor->shape,
                               std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())});
        }
        const std::string damaged = std::string("model.layers.0.mlp.experts.down_proj") + part;
        for (MadeTensor& t : tensors)
            if (t.name == damaged) t.shape.push_back(1);
        write_file(folder / "config.json", *checkpoint.document("config.json"));
        write_file(folder / "model.safetensors", safetensors(tensors));
        EXPECT_CONTAINS(error_of([&] { convert_to(folder.path(), folder / "model.ggmx"); }), damaged);
        for (MadeTensor& t : tensors)
            if (t.name == damaged) t.shape.pop_back();
        if (std::string(part) == "_scales") {
            for (MadeTensor& t : tensors)
                if (t.name == damaged) t.bytes[7] = '\xff';  // NaN
            write_file(folder / "model.safetensors", safetensors(tensors));
            EXPECT_CONTAINS(error_of([&] { convert_to(folder.path(), folder / "model.ggmx"); }), "scale 255");
        }
    }
}

/// qwen3_moe of one layer, with the experts of transformers 5: stacked, gate above up.
struct StackedCheckpoint : MadeCheckpoint {
    static constexpr int64_t kExperts = 3, kFf = 24, kEmbd = 64;
    std::vector<float> gate_up = random_values(kExperts * 2 * kFf * kEmbd, 101);
    std::vector<float> down = random_values(kExperts * kEmbd * kFf, 102);

    StackedCheckpoint() {
        config["model_type"] = "qwen3_moe";
        config["num_hidden_layers"] = 1;
        config["num_experts"] = kExperts;
        config["num_experts_per_tok"] = 2;
        config["moe_intermediate_size"] = kFf;
        fill();
        std::erase_if(tensors, [](const MadeTensor& t) { return t.name.find(".experts.") != t.name.npos; });
        tensors.push_back(f32_tensor("model.layers.0.mlp.experts.gate_up_proj", {kExperts, 2 * kFf, kEmbd}, gate_up));
        tensors.push_back(f32_tensor("model.layers.0.mlp.experts.down_proj", {kExperts, kEmbd, kFf}, down));
    }
};

TEST(ConvertExperts, ReadsTheStackedFormOfTransformers5) {
    TempFolder folder;
    StackedCheckpoint made;
    made.write(folder.path());
    convert_to(folder.path(), folder / "model.ggmx");
    const auto file = ModelFile::open(folder / "model.ggmx");
    const auto gate = all_values(file, "blk.0.ffn_gate_exps.weight"), up = all_values(file, "blk.0.ffn_up_exps.weight");
    const size_t part = 24 * 64;
    for (size_t e = 0; e < 3; ++e)
        for (size_t i = 0; i < part; ++i) {
            ASSERT_EQ(gate[e * part + i], made.gate_up[e * 2 * part + i]);
            ASSERT_EQ(up[e * part + i], made.gate_up[(e * 2 + 1) * part + i]);
        }
    EXPECT_EQ(all_values(file, "blk.0.ffn_down_exps.weight"), made.down);
}

TEST(ConvertExperts, ReadsFp8StacksWithBlockScalesPerExpert) {
    TempFolder folder;
    StackedCheckpoint made;
    made.config["quantization_config"] = {{"quant_method", "fp8"}, {"weight_block_size", {16, 48}}};
    MadeTensor& t = made.at("model.layers.0.mlp.experts.gate_up_proj");
    t.dtype = "F8_E4M3";
    t.bytes = std::string(3 * 48 * 64, '\x38');  // 1.0
    std::vector<float> scales;                   // [3, 3, 2]
    for (int i = 0; i < 18; ++i) scales.push_back(static_cast<float>(i + 1));
    made.tensors.push_back(f32_tensor("model.layers.0.mlp.experts.gate_up_proj_scale_inv", {3, 3, 2}, scales));
    made.write(folder.path());
    convert_to(folder.path(), folder / "model.ggmx", DType::F32);
    const auto up = all_values(ModelFile::open(folder / "model.ggmx"), "blk.0.ffn_up_exps.weight");
    for (size_t e = 0; e < 3; ++e)
        for (size_t r = 0; r < 24; ++r)
            for (size_t c = 0; c < 64; ++c)
                ASSERT_EQ(up[(e * 24 + r) * 64 + c], scales[(e * 3 + (24 + r) / 16) * 2 + c / 48]) << e << " " << r;
}

TEST(ConvertExperts, ReadsFp8ExpertsOfTheirOwn) {
    TempFolder folder;
    MadeCheckpoint made;
    made.config["model_type"] = "qwen3_moe";
    made.config["num_experts"] = 2;
    made.config["num_experts_per_tok"] = 1;
    made.config["moe_intermediate_size"] = 24;
    made.config["quantization_config"] = {{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}};
    made.fill();
    std::vector<MadeTensor> scales;
    for (MadeTensor& t : made.tensors) {
        if (t.name.find(".experts.") == t.name.npos) continue;
        t.dtype = "F8_E4M3";
        t.bytes = std::string(t.bytes.size() / 4, '\x40');  // 2.0
        const float expert = t.name.find(".experts.0.") != t.name.npos ? 0 : 1;
        scales.push_back(f32_tensor(t.name + "_scale_inv", {1, 1}, {expert + 0.25f}));
    }
    made.tensors.insert(made.tensors.end(), scales.begin(), scales.end());
    made.write(folder.path());
    convert_to(folder.path(), folder / "model.ggmx");
    const auto file = ModelFile::open(folder / "model.ggmx");
    EXPECT_EQ(file.find("blk.1.ffn_up_exps.weight")->dtype, DType::BF16);
    const auto up = all_values(file, "blk.1.ffn_up_exps.weight");
    EXPECT_EQ(up.front(), 0.5f);
    EXPECT_EQ(up.back(), 2.5f);
}

TEST(ConvertExperts, NamesWhatIsMissing) {
    TempFolder folder;
    StackedCheckpoint made;
    made.remove("model.layers.0.mlp.experts.down_proj");
    made.write(folder.path());
    const std::string message = error_of([&] { convert_to(folder.path(), folder / "model.ggmx"); });
    EXPECT_CONTAINS(message, "lacks 3 tensors");
    EXPECT_CONTAINS(message, "model.layers.0.mlp.experts.2.down_proj.weight");
}

TEST(ConvertLatentAttention, SplitsKvBByHeadAndTransposesTheKeyPart) {
    TempFolder folder;
    convert_to(fixture("deepseek_v3"), folder / "model.ggmx");
    const auto file = ModelFile::open(folder / "model.ggmx");
    const auto kv_b =
        source_floats(Checkpoint::open(fixture("deepseek_v3")), "model.layers.1.self_attn.kv_b_proj.weight");
    const auto k_b = all_values(file, "blk.1.attn_k_b.weight"), v_b = all_values(file, "blk.1.attn_v_b.weight");
    const size_t n_head = 4, nope = 16, v = 20, rank = 32;
    ASSERT_EQ(kv_b.size(), n_head * (nope + v) * rank);
    for (size_t h = 0; h < n_head; ++h)
        for (size_t c = 0; c < rank; ++c) {
            for (size_t d = 0; d < nope; ++d)
                ASSERT_EQ(k_b[(h * rank + c) * nope + d], kv_b[(h * (nope + v) + d) * rank + c]);
            for (size_t d = 0; d < v; ++d)
                ASSERT_EQ(v_b[(h * v + d) * rank + c], kv_b[(h * (nope + v) + nope + d) * rank + c]);
        }
}

TEST(ConvertLatentAttention, ReadsKvBFromFp8) {
    TempFolder folder;
    MadeCheckpoint made;
    made.config = {{"model_type", "deepseek_v3"},
                   {"num_hidden_layers", 1},
                   {"first_k_dense_replace", 1},
                   {"hidden_size", 64},
                   {"num_attention_heads", 2},
                   {"intermediate_size", 96},
                   {"vocab_size", 40},
                   {"max_position_embeddings", 128},
                   {"kv_lora_rank", 24},
                   {"qk_nope_head_dim", 10},
                   {"qk_rope_head_dim", 4},
                   {"v_head_dim", 6},
                   {"n_routed_experts", 4},
                   {"num_experts_per_tok", 2},
                   {"moe_intermediate_size", 8},
                   {"quantization_config", {{"quant_method", "fp8"}, {"weight_block_size", {12, 16}}}}};
    made.fill();
    const std::vector<float> scales{1, 2, 3, 4, 5, 6};  // of [32, 24] in blocks of 12 x 16
    const std::string name = "model.layers.0.self_attn.kv_b_proj.weight";
    made.tensors.push_back({name, "F8_E4M3", {32, 24}, std::string(32 * 24, '\x38')});  // 1.0
    made.tensors.push_back(f32_tensor(name + "_scale_inv", {3, 2}, scales));
    made.write(folder.path());
    convert_to(folder.path(), folder / "model.ggmx", DType::F32);
    const auto file = ModelFile::open(folder / "model.ggmx");
    const auto k_b = all_values(file, "blk.0.attn_k_b.weight"), v_b = all_values(file, "blk.0.attn_v_b.weight");
    for (size_t h = 0; h < 2; ++h)
        for (size_t c = 0; c < 24; ++c) {
            for (size_t d = 0; d < 10; ++d)
                ASSERT_EQ(k_b[(h * 24 + c) * 10 + d], scales[(h * 16 + d) / 12 * 2 + c / 16])
                    << h << " " << c << " " << d;
            for (size_t d = 0; d < 6; ++d)
                ASSERT_EQ(v_b[(h * 6 + d) * 24 + c], scales[(h * 16 + 10 + d) / 12 * 2 + c / 16]) << h << " " << d;
        }
}

TEST(ConvertLatentAttention, QuantizesEveryHeadAsAMatrix) {
    TempFolder folder;
    convert_to(fixture("deepseek_v3"), folder / "f32.ggmx");
    convert_to(fixture("deepseek_v3"), folder / "q8_0.ggmx", DType::Q8_0);
    const auto exact = all_values(ModelFile::open(folder / "f32.ggmx"), "blk.0.attn_v_b.weight");
    const auto rounded = all_values(ModelFile::open(folder / "q8_0.ggmx"), "blk.0.attn_v_b.weight");
    const float largest = std::fabs(
        *std::max_element(exact.begin(), exact.end(), [](float a, float b) { return std::fabs(a) < std::fabs(b); }));
    ASSERT_EQ(rounded.size(), exact.size());
    // Half a step of 1/127 of a block's largest value, which the f16 scale may be off by 2^-11 of.
    for (size_t i = 0; i < exact.size(); ++i)
        ASSERT_NEAR(rounded[i], exact[i], largest * (0.51f / 127 + 0x1p-11f)) << i;
}

TEST(ConvertExperts, LeavesOutLayersOfMultiTokenPredictionAndSaysSo) {
    TempFolder folder;
    StackedCheckpoint made;
    made.config["num_nextn_predict_layers"] = 1;
    made.tensors.push_back(f32_tensor("model.layers.1.eh_proj.weight", {2, 2}, {1, 2, 3, 4}));
    made.tensors.push_back(f32_tensor("model.layers.1.mlp.gate.weight", {1}, {1}));
    made.write(folder.path());
    const Report report = convert_to(folder.path(), folder / "model.ggmx");
    const std::string what = "left out 2 tensors of multi-token prediction (model.layers.1.*)";
    EXPECT_EQ(std::count_if(report.notes.begin(), report.notes.end(),
                            [&](const std::string& note) { return note.find(what) != note.npos; }),
              1);
    made.tensors.push_back(f32_tensor("model.layers.2.eh_proj.weight", {1}, {1}));
    made.write(folder.path());
    EXPECT_CONTAINS(error_of([&] { convert_to(folder.path(), folder / "model.ggmx"); }), "model.layers.2.eh_proj");
}

}  // namespace
}  // namespace convert
