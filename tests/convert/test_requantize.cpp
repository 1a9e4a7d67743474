// .ggmx -> .ggmx: what keeps its type is copied bit by bit, what would lose twice needs leave.

#include "convert/requantize.h"

#include <gtest/gtest.h>

#include "convert/convert.h"
#include "ggmlx/file/reader.h"
#include "ggmlx/quant/quantize.h"
#include "tests/convert/synthetic.h"

namespace convert {
namespace {

using ggmlx::DType;
using ggmlx::ModelFile;

class Requantize : public testing::Test {
  protected:
    /// A model of the given type, made from random float32 weights.
    std::string model(DType type, const std::vector<std::string>& rules = {}, bool compress = false) {
        MadeCheckpoint().write(folder_.path());
        ConvertOptions options;
        options.input = folder_.path();
        options.output = folder_ / (std::string(ggmlx::name(type)) + ".ggmx");
        options.recipe = recipe(type, rules);
        options.compress = compress;
        convert(options);
        return options.output;
    }
    static Recipe recipe(std::optional<DType> type, const std::vector<std::string>& rules = {}) {
        Recipe result;
        result.type = type;
        for (const std::string& rule : rules) result.rules.push_back(parse_type_rule(rule));
        return result;
    }
    RequantizeOptions options(const std::string& input, const Recipe& recipe) {
        RequantizeOptions result;
        result.input = input;
        result.output = folder_ / "out.ggmx";
        result.recipe = recipe;
        return result;
    }
    TempFolder folder_;
};

bool same_bytes(const ModelFile& a, const ModelFile& b, const std::string& name) {
    const auto x = a.stored_bytes(*a.find(name)), y = b.stored_bytes(*b.find(name));
    return std::equal(x.begin(), x.end(), y.begin(), y.end());
}

TEST_F(Requantize, EqualsADirectConversionWhenItStartsFromFloats) {
    requantize(options(model(DType::F32), recipe(DType::Q4_0)));
    const auto direct = ModelFile::open(model(DType::Q4_0)), two_steps = ModelFile::open(folder_ / "out.ggmx");
    ASSERT_EQ(direct.tensors().size(), two_steps.tensors().size());
    for (const auto& tensor : direct.tensors()) {
        EXPECT_EQ(two_steps.find(tensor.name)->dtype, tensor.dtype) << tensor.name;
        EXPECT_TRUE(same_bytes(direct, two_steps, tensor.name)) << tensor.name;
    }
}

TEST_F(Requantize, CopiesTensorsOfTheSameTypeBitByBit) {
    const std::string input = model(DType::F32, {"attn_q=mxfp4", "ffn_up=q4_0"});
    const Report report = requantize(options(input, recipe(DType::Q8_0, {"attn_q=mxfp4", "ffn_up=q4_0"})));
    const auto before = ModelFile::open(input), after = ModelFile::open(folder_ / "out.ggmx");
    for (const char* name : {"blk.0.attn_q.weight", "blk.1.ffn_up.weight", "output_norm.weight"})
        EXPECT_TRUE(same_bytes(before, after, name)) << name;
    EXPECT_EQ(after.find("blk.0.attn_k.weight")->dtype, DType::Q8_0);
    for (const auto& tensor : report.tensors) EXPECT_FALSE(tensor.requantized) << tensor.name;
}

TEST_F(Requantize, RefusesToLoseTwiceUnlessAllowed) {
    auto wanted = options(model(DType::F32, {"attn_q=q8_0"}), recipe(DType::Q4_0));
    const std::string message = error_of([&] { requantize(wanted); });
    EXPECT_CONTAINS(message, "--allow-requantize");
    EXPECT_CONTAINS(message, "blk.0.attn_q.weight: q8_0 -> q4_0");
    EXPECT_CONTAINS(message, "blk.1.attn_q.weight: q8_0 -> q4_0");
    EXPECT_EQ(message.find("attn_k"), std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(wanted.output));
    EXPECT_FALSE(std::filesystem::exists(wanted.output + ".partial"));

    wanted.allow_requantize = true;
    int64_t n = 0;
    for (const auto& tensor : requantize(wanted).tensors) n += tensor.requantized;
    EXPECT_EQ(n, 2);
}

TEST_F(Requantize, ExpandsToF32WithoutLoss) {
    const std::string input = model(DType::Q8_0);
    requantize(options(input, recipe(DType::F32)));
    const auto before = ModelFile::open(input), after = ModelFile::open(folder_ / "out.ggmx");
    const auto& q = *before.find("blk.0.attn_q.weight");
    std::vector<float> expected(64 * 64);
    ggmlx::dequantize_rows(q.dtype, before.stored_bytes(q), 64, 64, 0, 64, expected.data());
    const auto stored = after.stored_bytes(*after.find("blk.0.attn_q.weight"));
    ASSERT_EQ(stored.size(), expected.size() * sizeof(float));
    EXPECT_EQ(std::memcmp(stored.data(), expected.data(), stored.size()), 0);
}

TEST_F(Requantize, ReadsCompressedModels) {
    requantize(options(model(DType::F32, {}, true), recipe(DType::Q8_0, {"attn_q=f32"})));
    const auto direct = ModelFile::open(model(DType::Q8_0, {"attn_q=f32"})),
               out = ModelFile::open(folder_ / "out.ggmx");
    for (const auto& tensor : direct.tensors()) EXPECT_TRUE(same_bytes(direct, out, tensor.name)) << tensor.name;
}

TEST_F(Requantize, FindsDamageInsteadOfCopyingIt) {
    const std::string input = model(DType::Q8_0);
    const auto offset = ModelFile::open(input).find("blk.1.ffn_up.weight")->offset;
    std::string bytes = read_file(input);
    bytes[offset + 100] ^= 4;
    write_file(input, bytes);
    EXPECT_CONTAINS(error_of([&] { requantize(options(input, recipe({}, {"attn_q=f32"}))); }), "blk.1.ffn_up.weight");
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out.ggmx"));
}

TEST_F(Requantize, RemembersWhereItCameFrom) {
    requantize(options(model(DType::F32), recipe(DType::Q8_0)));
    const auto origin = nlohmann::json::parse(ModelFile::open(folder_ / "out.ggmx").document("quantization.json"));
    EXPECT_EQ(origin["type"], "q8_0");
    EXPECT_EQ(origin["source_dtype"], "f32");
    EXPECT_EQ(origin["previous"]["type"], "f32");
}

TEST_F(Requantize, RefusesItsInputAsOutput) {
    auto wanted = options(model(DType::F32), recipe(DType::Q8_0));
    wanted.output = wanted.input;
    EXPECT_CONTAINS(error_of([&] { requantize(wanted); }), "is the input");
}

TEST_F(Requantize, MeasuresErrors) {
    auto wanted = options(model(DType::F32), recipe(DType::Q8_0));
    wanted.measure_errors = true;
    for (const auto& t : requantize(wanted).tensors) {
        if (t.from == ggmlx::name(t.dtype)) {
            EXPECT_EQ(t.rmse, 0.0) << t.name;
            continue;
        }
        EXPECT_GT(t.rmse, 0.0) << t.name;
        EXPECT_LT(t.rmse, t.max_error) << t.name;
        EXPECT_NEAR(t.bits_per_weight, 8.5, 1.8) << t.name;  // rows of 64; 40 rows pad to 48
    }
}

}  // namespace
}  // namespace convert
