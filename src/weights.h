#pragma once
// Weights by name: a model file's index against the tensors that its architecture has. Only descriptions; the bytes
// stay in the file until an engine puts them on devices.

#include <span>
#include <vector>

#include "ggmlx/core/tensor.h"
#include "ggmlx/file/reader.h"
#include "src/arch/arch.h"

namespace llm {

/// Describes every stored tensor, in file order. The index and the specs must agree both ways: throws corrupt_file that
/// names all tensors of the file that the architecture does not know, all that it needs and the file lacks, and every
/// one with another shape or a type its place cannot have (vectors, norms and routers are f32; caches' types are no
/// weight types).
ggmlx::TensorSet describe_weights(const ggmlx::ModelFile& file, std::span<const TensorSpec> specs);

/// Describes the same tensors without a file: matrices in `matrix_type` (or its fallback where the type's block does
/// not suit the row length), everything else f32. For planning before anything is downloaded.
ggmlx::TensorSet describe_weights(std::span<const TensorSpec> specs, ggmlx::DType matrix_type);

}  // namespace llm
