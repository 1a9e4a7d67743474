// A model file's index against what its architecture needs: every difference is found and named.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "ggmlx/core/error.h"
#include "ggmlx/file/writer.h"
#include "src/weights.h"

namespace llm {
namespace {

using ggmlx::DType;
using ggmlx::Role;

TensorSpec spec(std::string name, ggmlx::Shape shape, Role role) {
    TensorSpec s;
    s.name = std::move(name);
    s.shape = shape;
    s.role = role;
    s.quantizable = shape.rank() > 1;
    return s;
}

std::vector<TensorSpec> specs() {
    return {spec("token_embd.weight", {8, 32}, Role::Embedding), spec("blk.0.attn_norm.weight", {32}, Role::Norm),
            spec("blk.0.attn_q.weight", {16, 32}, Role::Attention)};
}

std::vector<ggmlx::TensorToWrite> matching_tensors() {
    return {{"token_embd.weight", DType::F16, Role::Embedding, {8, 32}},
            {"blk.0.attn_norm.weight", DType::F32, Role::Norm, {32}},
            {"blk.0.attn_q.weight", DType::Q8_0, Role::Attention, {16, 32}}};
}

class Weights : public testing::Test {
  protected:
    const std::string path_ =
        (std::filesystem::temp_directory_path() / ("ggmlx-weights-" + std::to_string(getpid()) + ".ggmx")).string();
    void TearDown() override { std::filesystem::remove(path_); }

    ggmlx::ModelFile file_with(const std::vector<ggmlx::TensorToWrite>& tensors) const {
        ggmlx::ModelWriter writer(path_, {{"config.json", "{}"}}, tensors);
        for (size_t i = 0; i < tensors.size(); ++i) {
            const auto n = static_cast<size_t>(ggmlx::slice_bytes(tensors[i].dtype, tensors[i].shape));
            writer.write_slice(i, 0, std::vector<std::byte>(n));
        }
        writer.finish();
        return ggmlx::ModelFile::open(path_);
    }
    std::string error_with(const std::vector<ggmlx::TensorToWrite>& tensors) const {
        const auto file = file_with(tensors);
        try {
            describe_weights(file, specs());
        } catch (const ggmlx::Error& e) {
            EXPECT_EQ(e.kind(), ggmlx::ErrorKind::CorruptFile);
            return e.what();
        }
        return "no error";
    }
};

TEST_F(Weights, AreDescribedAsStored) {
    const auto file = file_with(matching_tensors());
    const ggmlx::TensorSet set = describe_weights(file, specs());
    ASSERT_EQ(set.size(), 3);
    EXPECT_EQ(set.get("token_embd.weight").dtype(), DType::F16);
    EXPECT_EQ(set.get("blk.0.attn_q.weight").dtype(), DType::Q8_0);
    EXPECT_EQ(set.get("blk.0.attn_q.weight").shape(), (ggmlx::Shape{16, 32}));
    EXPECT_EQ(set.get("blk.0.attn_norm.weight").info().role, Role::Norm);
}

TEST_F(Weights, NamesWhatIsMissingAndWhatDoesNotBelong) {
    auto tensors = matching_tensors();
    tensors[2].name = "blk.0.attn_z.weight";
    const std::string message = error_with(tensors);
    EXPECT_NE(message.find("1 tensors are missing: blk.0.attn_q.weight"), std::string::npos) << message;
    EXPECT_NE(message.find("1 tensors do not belong to the architecture: blk.0.attn_z.weight"), std::string::npos)
        << message;
    EXPECT_NE(message.find(path_), std::string::npos) << message;
}

TEST_F(Weights, NamesWrongShapesAndTypes) {
    auto tensors = matching_tensors();
    tensors[0].shape = {9, 32};
    tensors[1].dtype = DType::BF16;
    const std::string message = error_with(tensors);
    EXPECT_NE(message.find("token_embd.weight is [9, 32], not [8, 32]"), std::string::npos) << message;
    EXPECT_NE(message.find("blk.0.attn_norm.weight cannot be bf16"), std::string::npos) << message;
}

TEST_F(Weights, ShortensLongLists) {
    auto tensors = matching_tensors();
    for (int i = 0; i < 30; ++i) tensors.push_back({"extra." + std::to_string(i), DType::F32, Role::Dense, {4}});
    const std::string message = error_with(tensors);
    EXPECT_NE(message.find("30 tensors do not belong"), std::string::npos) << message;
    EXPECT_NE(message.find("and 10 more"), std::string::npos) << message;
}

TEST(WeightsWithoutAFile, HaveTheAssumedTypeWhereItFits) {
    auto all = specs();
    all.push_back(spec("wide.weight", {4, 512}, Role::Dense));
    const ggmlx::TensorSet set = describe_weights(all, DType::Q4_K);
    EXPECT_EQ(set.get("wide.weight").dtype(), DType::Q4_K);
    EXPECT_EQ(set.get("blk.0.attn_q.weight").dtype(), DType::Q4_1) << "32 values are no block of q4_k";
    EXPECT_EQ(set.get("blk.0.attn_norm.weight").dtype(), DType::F32);
}

}  // namespace
}  // namespace llm
