#pragma once
// Small .safetensors files that commands exchange with tests and scripts: token ids in, logits and dumped values out.

#include <span>
#include <string>
#include <vector>

#include "ggmlx/core/dtype.h"
#include "ggmlx/core/shape.h"
#include "src/tokenizer/tokenizer.h"

namespace cli {

struct TensorToSave {
    std::string name;
    ggmlx::DType dtype = ggmlx::DType::F32;  ///< f32 or i32
    ggmlx::Shape shape;
    std::span<const std::byte> bytes;
};
/// Throws io with the system's reason.
void write_safetensors(const std::string& path, std::span<const TensorToSave> tensors);

/// An I32 tensor of rank 1. Throws corrupt_file if the file is damaged or has no such tensor.
std::vector<llm::TokenId> read_safetensors_ids(const std::string& path, std::string_view name);

}  // namespace cli
