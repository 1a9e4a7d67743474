#include "ggmlx/file/sample_model.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "ggmlx/quant/quantize.h"

namespace ggmlx::test {

std::string fresh_path(const std::string& name) {
    const auto path = std::filesystem::temp_directory_path() / ("ggmlx_" + std::to_string(getpid()) + "_" + name);
    std::filesystem::remove_all(path);
    std::filesystem::remove_all(path.string() + ".partial");
    return path.string();
}

std::vector<std::byte> read_bytes(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

void write_bytes(const std::string& path, std::span<const std::byte> bytes) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

bool exists(const std::string& path) {
    struct stat st {};
    return ::lstat(path.c_str(), &st) == 0;
}

std::vector<DocumentToWrite> sample_documents() {
    return {{"config.json", R"({"model_type": "sample"})"}, {"tokenizer.json", std::string(3000, 'x')}, {"empty", ""}};
}

std::vector<TensorToWrite> sample_tensors() {
    return {{"output_norm.weight", DType::F32, Role::Norm, {5}},
            {"token_embd.weight", DType::BF16, Role::Embedding, {3, 7}},
            {"blk.0.attn_q.weight", DType::Q8_0, Role::Attention, {17, 100}},
            {"blk.0.ffn_gate_exps.weight", DType::MXFP4, Role::Expert, {3, 17, 64}},
            {"blk.0.ffn_gate_exps.bias", DType::F32, Role::Expert, {3, 17}},
            {"blk.0.ffn_up_exps.weight", DType::F32, Role::Expert, {2, 257, 256}},  // slices of 263168 bytes: padded
            {"table", DType::I32, Role::Table, {2, 3, 4, 5}},
            {"output.weight", DType::Q4_K, Role::Output, {2, 2, 1, 256}}};
}

std::vector<std::byte> sample_slice(const TensorToWrite& tensor, size_t size_bytes, unsigned seed) {
    std::vector<std::byte> data(size_bytes);
    std::mt19937 random(seed);
    if (tensor.dtype == DType::I32) {
        for (size_t i = 0; i < size_bytes; ++i) data[i] = static_cast<std::byte>(random());
        return data;
    }
    const int64_t n_in = tensor.shape[-1], n_out = tensor.shape.rank() > 1 ? tensor.shape[-2] : 1;
    const auto matrix_bytes = static_cast<size_t>(slice_bytes(tensor.dtype, tensor.shape));
    std::normal_distribution<float> normal(0.0f, 0.5f);
    std::vector<float> values(static_cast<size_t>(n_out * n_in));
    for (size_t at = 0; at < size_bytes; at += matrix_bytes) {
        for (float& v : values) v = normal(random);
        quantize_matrix(tensor.dtype, values.data(), n_out, n_in, std::span(data).subspan(at, matrix_bytes));
    }
    return data;
}

void write_model(const std::string& path, const std::vector<DocumentToWrite>& documents,
                 const std::vector<TensorToWrite>& tensors, bool compress) {
    ModelWriter writer(path, documents, tensors, compress);
    for (size_t t = 0; t < tensors.size(); ++t) {
        const int64_t n = writer.n_slices(t);
        const auto slice = static_cast<size_t>(storage_bytes(tensors[t].dtype, tensors[t].shape) / n);
        for (int64_t i = 0; i < n; ++i)
            writer.write_slice(
                t, i, sample_slice(tensors[t], slice, static_cast<unsigned>(1000 * t) + static_cast<unsigned>(i)));
    }
    writer.finish();
}

const std::vector<std::byte>& sample_bytes(bool compress) {
    auto write = [](bool with_frames) {
        const std::string path = fresh_path("sample.ggmx");
        write_model(path, sample_documents(), sample_tensors(), with_frames);
        std::vector<std::byte> bytes = read_bytes(path);
        std::filesystem::remove(path);
        return bytes;
    };
    static const std::vector<std::byte> raw = write(false), compressed = write(true);
    return compress ? compressed : raw;
}

}  // namespace ggmlx::test
