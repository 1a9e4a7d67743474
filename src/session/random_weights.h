#pragma once
// Random weights for a model that is only a shape: what it would do on this machine, before it is downloaded.

#include "ggmlx/backend/weights.h"

namespace llm {

/// Values as a model has them: normal with variance 1 / n_in, norms near 1, biases 0. Matrices repeat a small set of
/// random rows, so that even hundreds of gigabytes are made at the speed of memory. A span is good until the next call.
ggmlx::DeviceWeights::Source random_weights();

}  // namespace llm
