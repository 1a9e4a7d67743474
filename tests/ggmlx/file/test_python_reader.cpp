// gguf-like-spec/read_ggmx.py was written from the specification alone: if it decodes every type to the same bits, the
// text is right.

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>

#include "ggmlx/file/reader.h"
#include "ggmlx/file/sample_model.h"
#include "ggmlx/quant/quantize.h"

namespace ggmlx {
namespace {

const std::string kScript = GGMLX_SOURCE_DIR "/gguf-like-spec/read_ggmx.py";

int run(const std::string& command) { return std::system((command + " > /dev/null").c_str()); }

std::string shell_word(const std::string& text) { return "'" + text + "'"; }

/// Every dtype in awkward shapes: one row, 17 rows, rows that do not fill a block, stacked experts, rank 4.
std::vector<TensorToWrite> awkward_tensors() {
    std::vector<TensorToWrite> tensors;
    for (uint32_t id = 0; id < kDTypeCount; ++id) {
        const DType dtype = *dtype_from_id(id);
        for (const Shape& shape :
             {Shape{1, 64}, {17, 100}, {3, 172}, {2, 256}, {17, 256}, {3, 17, 32}, {2, 3, 512}, {2, 3, 5, 256}}) {
            if (storable_type(dtype, shape[-1]) != dtype) continue;
            const Role role = shape.rank() == 3 ? Role::Expert : Role::Dense;
            tensors.push_back({std::string(name(dtype)) + shape.to_string(), dtype, role, shape});
        }
    }
    tensors.push_back({"f32 vector", DType::F32, Role::Norm, {7}});
    tensors.push_back({"padded experts", DType::F32, Role::Expert, {2, 129, 512}});  // slices of 264192 bytes
    return tensors;
}

/// All values of a tensor as our own code gives them.
std::vector<float> our_values(const ModelFile& file, const StoredTensor& tensor) {
    std::vector<std::byte> data(tensor.raw_bytes);
    file.read(tensor, data);
    std::vector<float> values(static_cast<size_t>(tensor.shape.n_elements()));
    if (tensor.dtype == DType::I32) {
        std::memcpy(values.data(), data.data(), data.size());
        return values;
    }
    const int64_t n_in = tensor.shape[-1], n_out = tensor.shape.rank() > 1 ? tensor.shape[-2] : 1;
    const auto matrix_bytes = static_cast<size_t>(slice_bytes(tensor.dtype, tensor.shape));
    const size_t step = tensor.expert_stride ? tensor.expert_stride : matrix_bytes;
    for (size_t i = 0; i * static_cast<size_t>(n_out * n_in) < values.size(); ++i)
        dequantize_rows(tensor.dtype, std::span(data).subspan(i * step, matrix_bytes), n_out, n_in, 0, n_out,
                        values.data() + i * static_cast<size_t>(n_out * n_in));
    return values;
}

class PythonReader : public testing::Test {
  protected:
    void SetUp() override {
        if (run("python3 -c 'import ctypes; ctypes.CDLL(\"libzstd.so.1\"); ctypes.CDLL(\"libxxhash.so.0\")' 2>&1") != 0)
            GTEST_SKIP() << "python3 with the shared libraries libzstd.so.1 and libxxhash.so.0 was not found";
        folder_ = test::fresh_path("python_reader");
        std::filesystem::create_directory(folder_);
        path_ = folder_ + "/model.ggmx";
    }
    void TearDown() override {
        if (!folder_.empty()) std::filesystem::remove_all(folder_);
    }
    std::string folder_, path_;
};

TEST_F(PythonReader, DecodesEveryTypeToTheSameBits) {
    for (bool compress : {false, true}) {
        test::write_model(path_, test::sample_documents(), awkward_tensors(), compress);
        const std::string driver =
            "import sys; sys.path.insert(0, sys.argv[1]); sys.dont_write_bytecode = True\n"
            "import read_ggmx\n"
            "file = read_ggmx.ModelFile(sys.argv[2])\n"
            "for i, tensor in enumerate(file.tensors.values()):\n"
            "    read_ggmx.tensor_values(file, tensor).tofile(open(f\"{sys.argv[3]}/{i}\", \"wb\"))\n";
        ASSERT_EQ(run("python3 -c " + shell_word(driver) + " " + shell_word(GGMLX_SOURCE_DIR "/gguf-like-spec") + " " +
                      shell_word(path_) + " " + shell_word(folder_)),
                  0);
        const ModelFile file = ModelFile::open(path_);
        for (size_t i = 0; i < file.tensors().size(); ++i) {
            const StoredTensor& tensor = file.tensors()[i];
            const std::vector<float> ours = our_values(file, tensor);
            const std::vector<std::byte> theirs = test::read_bytes(folder_ + "/" + std::to_string(i));
            const auto our_bytes = std::as_bytes(std::span(ours));
            ASSERT_EQ(theirs.size(), our_bytes.size()) << tensor.name;
            // As numbers, so that 0 and -0 agree; i32 as bits.
            std::vector<float> values(ours.size());
            std::memcpy(values.data(), theirs.data(), theirs.size());
            for (size_t k = 0; k < ours.size(); ++k)
                ASSERT_TRUE(tensor.dtype == DType::I32 ? std::memcmp(&values[k], &ours[k], 4) == 0
                                                       : values[k] == ours[k])
                    << tensor.name << " value " << k << ": " << values[k] << " and " << ours[k];
        }
    }
}

TEST_F(PythonReader, HasTheCommandsItDocuments) {
    test::write_model(path_, test::sample_documents(), test::sample_tensors(), true);
    const std::string python = "python3 " + shell_word(kScript) + " ";
    EXPECT_EQ(run(python + "check " + shell_word(path_)), 0);
    EXPECT_EQ(run(python + "dump " + shell_word(path_) + " | python3 -m json.tool"), 0);
    EXPECT_EQ(run(python + "tensor " + shell_word(path_) + " output_norm.weight --out " + shell_word(folder_ + "/out")),
              0);
    EXPECT_EQ(test::read_bytes(folder_ + "/out").size(), 5u * 4);
    EXPECT_NE(run(python + "tensor " + shell_word(path_) + " absent 2>&1"), 0);

    std::vector<std::byte> bytes = test::read_bytes(path_);
    bytes.back() ^= std::byte{1};
    test::write_bytes(path_, bytes);
    EXPECT_NE(run(python + "check " + shell_word(path_) + " 2>&1"), 0);
}

}  // namespace
}  // namespace ggmlx
