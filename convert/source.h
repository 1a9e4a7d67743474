#pragma once
// What a model is converted from: a Hugging Face checkpoint or a GGUF file. convert.cpp sees only this.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "convert/encode.h"
#include "ggmlx/file/writer.h"
#include "src/arch/arch.h"

namespace convert {

/// How a source stores one tensor of the model.
struct StoredType {
    std::string name;                        ///< the source's own word, lower case: "bf16", "f8_e4m3", "q5_k"
    ggmlx::DType dtype = ggmlx::DType::F32;  ///< what it becomes if nobody asks for another type
    bool exact = true;          ///< `dtype` holds these very values; false for GGUF types that have no equal here
    bool is_quantized = false;  ///< rounded to fit blocks before: another block type would round a second time
};

/// One slice (a matrix, a vector or one expert of a stack) to be stored as `dtype`.
struct SliceJob {
    const llm::TensorSpec& spec;
    int64_t slice = 0;
    ggmlx::DType dtype = ggmlx::DType::F32;
    ErrorSum* error = nullptr;  ///< may be null
    int n_threads = 0;          ///< 0: all
};

class Source {
  public:
    virtual ~Source() = default;
    Source() = default;
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;

    /// The files that hold the weights.
    virtual std::vector<std::string> weight_files() const = 0;
    /// config.json and, as far as they are there, generation_config.json, tokenizer.json, tokenizer_config.json,
    /// special_tokens_map.json and chat_template.jinja.
    virtual std::vector<ggmlx::DocumentToWrite> documents() const = 0;
    /// Checks that every spec has its tensor, of the right shape and of a type that can be read, and that every tensor
    /// is used, known to be needless or matched by a pattern of `skip`. Throws corrupt_file listing what is missing or
    /// of the wrong shape, unsupported listing unknown tensors or types, invalid_argument for a skip pattern that
    /// matches nothing. Returns notes for the user. Comes before the two functions below.
    virtual std::vector<std::string> match(const llm::Architecture& architecture,
                                           const std::vector<llm::TensorSpec>& specs,
                                           std::span<const std::string> skip) = 0;
    virtual StoredType stored_type(const llm::TensorSpec& spec) const = 0;
    /// Fills dst, slice_bytes of the target. Throws corrupt_file for values that are not finite.
    virtual void produce(const SliceJob& job, std::span<std::byte> dst) const = 0;
};

/// path: a checkpoint folder, one .safetensors file, or a GGUF file (known by its first bytes). Throws as
/// Checkpoint::open and GgufCheckpoint::open do.
std::unique_ptr<Source> open_source(const std::string& path);

}  // namespace convert
