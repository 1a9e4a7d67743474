// Stands in for the CUDA backend in a build without it.

#include "ggmlx/backend/cuda/cuda_backend.h"
#include "ggmlx/core/error.h"

namespace ggmlx {

CudaCards find_cuda_cards() { return {0, "this program was built without CUDA"}; }

std::unique_ptr<Backend> make_cuda_backend(int index, const CudaOptions&) {
    fail(ErrorKind::Unsupported, "cuda{}: this program was built without CUDA; build it with `cmake --preset cuda`",
         index);
}

}  // namespace ggmlx
