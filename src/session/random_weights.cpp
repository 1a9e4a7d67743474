#include "src/session/random_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include "ggmlx/quant/quantize.h"

namespace llm {

using ggmlx::Shape;
using ggmlx::Tensor;

namespace {

constexpr int64_t kPoolRows = 64;  // whole tiles of rows

class RandomWeights {
  public:
    std::span<const std::byte> operator()(Tensor weight) {
        bytes_.assign(static_cast<size_t>(ggmlx::storage_bytes(weight.dtype(), weight.shape())), std::byte{0});
        const bool is_norm = weight.info().role == ggmlx::Role::Norm;
        if (weight.shape().rank() == 1 || weight.name().ends_with(".bias"))
            fill_vector(weight.dtype(), is_norm ? 1.0f : 0.0f);
        else
            fill_matrices(weight);
        return bytes_;
    }

  private:
    std::vector<std::byte> bytes_;
    std::mt19937 random_{1};

    /// Biases, norms and other small tensors, which are f32.
    void fill_vector(ggmlx::DType dtype, float value) {
        if (dtype != ggmlx::DType::F32) return;
        for (size_t i = 0; i + sizeof value <= bytes_.size(); i += sizeof value)
            std::memcpy(bytes_.data() + i, &value, sizeof value);
    }

    /// The stored rows of any matrix lie one tile of rows after the other, so a few of them can be repeated.
    void fill_matrices(Tensor weight) {
        const int64_t n_in = weight.shape()[-1], n_out = weight.shape()[-2];
        const std::vector<std::byte> pool = pool_of(weight.dtype(), std::min(n_out, kPoolRows), n_in);
        const auto slice = static_cast<size_t>(ggmlx::slice_bytes(weight.dtype(), weight.shape()));
        for (size_t begin = 0; begin < bytes_.size(); begin += slice)
            for (size_t at = 0; at < slice; at += pool.size())
                std::memcpy(bytes_.data() + begin + at, pool.data(), std::min(pool.size(), slice - at));
    }

    std::vector<std::byte> pool_of(ggmlx::DType dtype, int64_t n_out, int64_t n_in) {
        std::normal_distribution<float> normal(0.0f, 1.0f / std::sqrt(static_cast<float>(n_in)));
        std::vector<float> values(static_cast<size_t>(n_out * n_in));
        for (float& value : values) value = normal(random_);
        std::vector<std::byte> stored(static_cast<size_t>(ggmlx::slice_bytes(dtype, {n_out, n_in})));
        ggmlx::quantize_matrix(dtype, values.data(), n_out, n_in, stored, 0);
        return stored;
    }
};

}  // namespace

ggmlx::DeviceWeights::Source random_weights() {
    return [generator = std::make_shared<RandomWeights>()](Tensor weight) { return (*generator)(weight); };
}

}  // namespace llm
