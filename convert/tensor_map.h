#pragma once
// Brings together what a family needs and what a checkpoint holds: every tensor of either side is accounted for.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convert/checkpoint.h"
#include "convert/matrix_source.h"
#include "src/arch/arch.h"

namespace convert {

/// The packed form in which the checkpoint holds a tensor; null if it holds spec.sources, or nothing.
const llm::PackedSource* packed_form(const Checkpoint& checkpoint, const llm::TensorSpec& spec);

/// Checks that every source of every spec is there with the right shape, and that every tensor of the checkpoint is
/// used, known to be needless, a copy of a tied tensor, of a layer that predicts further tokens, or matched by a
/// pattern of `skip`. Throws corrupt_file listing all that is missing or of the wrong shape, unsupported listing all
/// unknown names, invalid_argument for a skip pattern that matches nothing. Returns notes for the user: what was
/// skipped or left out, and what became of a tied copy.
std::vector<std::string> match_tensors(const Checkpoint& checkpoint, const llm::Architecture& architecture,
                                       const llm::ModelConfig& config, const std::vector<llm::TensorSpec>& specs,
                                       std::span<const std::string> skip, ScaleBlock block);

/// True if a name fits a pattern in which `*` stands for anything.
bool matches_wildcard(std::string_view pattern, std::string_view name);

}  // namespace convert
