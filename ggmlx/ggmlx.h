#pragma once
// The whole tensor library. The order of includes is a good order of reading.

// clang-format off
#include "ggmlx/core/error.h"
#include "ggmlx/core/shape.h"
#include "ggmlx/core/dtype.h"
#include "ggmlx/core/tensor.h"
#include "ggmlx/quant/blocks.h"
#include "ggmlx/quant/quantize.h"
#include "ggmlx/file/reader.h"
#include "ggmlx/file/writer.h"
#include "ggmlx/graph/op.h"
#include "ggmlx/graph/graph.h"
#include "ggmlx/graph/ops.h"
#include "ggmlx/graph/call.h"
#include "ggmlx/reference/reference.h"
#include "ggmlx/placement/rules.h"
#include "ggmlx/placement/plan.h"
#include "ggmlx/backend/backend.h"
#include "ggmlx/backend/weights.h"
#include "ggmlx/backend/executor.h"
// clang-format on
