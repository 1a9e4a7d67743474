#pragma once
// The reference implementations as a device with memory of its own, so that placement, splitting, copies and devices
// working at the same time can be tested on any machine.

#include <memory>
#include <string>

#include "ggmlx/backend/backend.h"

namespace ggmlx {

/// name: "ref0", "ref1".
std::unique_ptr<Backend> make_reference_backend(std::string name);

}  // namespace ggmlx
