#pragma once
// Which steps of a segment may run at the same time.

#include "ggmlx/placement/plan.h"

namespace ggmlx {

/// Sets PlanStep::round of every step. A step joins the round of the step before it unless it reads or writes what that
/// round writes, or writes what it reads. The order of steps stays as it is.
void number_rounds(Plan& plan);

}  // namespace ggmlx
