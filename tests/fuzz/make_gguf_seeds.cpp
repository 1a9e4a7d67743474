// make_gguf_seeds FOLDER: small valid files for the fuzz target of GGUF files to start from.

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>

#include "convert/gguf/made_gguf.h"

namespace {

using namespace convert;

void write_seed(const std::string& path, MadeGguf made) { std::ofstream(path, std::ios::binary) << made.bytes(); }

MadeGguf hyper_parameters() {
    MadeGguf made;
    made.text("general.architecture", "llama")
        .u32("llama.block_count", 1)
        .u32("llama.context_length", 64)
        .u32("llama.embedding_length", 32)
        .u32("llama.feed_forward_length", 64)
        .u32("llama.attention.head_count", 4)
        .f32("llama.attention.layer_norm_rms_epsilon", 1e-5f)
        .text("llama.rope.scaling.type", "yarn")
        .f32("llama.rope.scaling.factor", 4)
        .u32("llama.rope.scaling.original_context_length", 16);
    made.tensor("token_embd.weight", {32, 3}, GgufType::Q8_0, std::string(3 * 34, '\1'));
    return made;
}

MadeGguf byte_level() {
    MadeGguf made;
    made.text("tokenizer.ggml.model", "gpt2")
        .text("tokenizer.ggml.pre", "llama-bpe")
        .texts("tokenizer.ggml.tokens", {"a", "b", "ab", "<s>"})
        .array<int32_t>("tokenizer.ggml.token_type", GgufKind::I32, {1, 1, 1, 3})
        .texts("tokenizer.ggml.merges", {"a b"})
        .u32("tokenizer.ggml.bos_token_id", 3)
        .text("tokenizer.chat_template", "{{ x }}");
    return made;
}

MadeGguf sentencepiece() {
    MadeGguf made;
    made.text("tokenizer.ggml.model", "llama")
        .texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "a", "b", "ab", "<0x0A>"})
        .array<int32_t>("tokenizer.ggml.token_type", GgufKind::I32, {2, 3, 1, 1, 1, 6})
        .array<float>("tokenizer.ggml.scores", GgufKind::F32, {0, 0, -2, -3, -1, 0});
    return made;
}

/// A tensor of two rows of every type that can be read.
MadeGguf every_type() {
    MadeGguf made;
    for (uint32_t id = 0; id < 64; ++id) {
        const GgufTypeInfo* type = find_gguf_type(id);
        if (!type || !type->dtype) continue;
        made.tensor("t." + std::string(type->name), {static_cast<uint64_t>(type->block_len), 2}, type->type,
                    std::string(static_cast<size_t>(2 * type->block_bytes), '\x21'));
    }
    return made;
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc != 2) {
        std::fputs("usage: make_gguf_seeds FOLDER\n", stderr);
        return 2;
    }
    const std::string folder = argv[1];
    std::filesystem::create_directories(folder);
    write_seed(folder + "/model.gguf", hyper_parameters());
    write_seed(folder + "/byte_level.gguf", byte_level());
    write_seed(folder + "/sentencepiece.gguf", sentencepiece());
    write_seed(folder + "/types.gguf", every_type());
    write_seed(folder + "/empty.gguf", {});
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
