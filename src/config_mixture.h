#pragma once
// The experts that a config.json describes. Every family has its own words for them.

#include "src/config.h"
#include "src/config_family.h"

namespace llm {

/// Fills c.mixture and c.n_mtp_layers; layers, widths and n_ff of c are set already. A dense family has no mixture.
/// Throws corrupt_file for impossible numbers, naming the field, and unsupported for a way of routing that this version
/// does not know.
void parse_mixture(const JsonFields& json, const Family& family, ModelConfig& c);

}  // namespace llm
