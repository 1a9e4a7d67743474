#pragma once
// What tests of ops need: arrays with bytes, calls of the reference, random weights of every type, and weights and
// activations as float64.

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "ggmlx/core/math.h"
#include "ggmlx/quant/activation.h"
#include "ggmlx/quant/blocks.h"
#include "ggmlx/reference/reference.h"

namespace ggmlx::test {

inline constexpr double kEps = 0x1p-24;  ///< largest relative error of one float32 rounding

inline const std::vector<DType> kWeightTypes = {DType::F32,  DType::F16,  DType::BF16, DType::Q8_0,  DType::Q4_0,
                                                DType::Q4_1, DType::Q4_K, DType::Q6_K, DType::MXFP4, DType::MXFP8};

/// An array with its bytes. The view is valid while it lives and is not moved.
struct Array {
    DType dtype = DType::F32;
    Shape shape;
    std::vector<std::byte> bytes;
    int64_t slot_stride = 0;

    Array(DType t, Shape s) : dtype(t), shape(s), bytes(static_cast<size_t>(storage_bytes(t, s))) {}
    Array(Shape s, const std::vector<float>& values) : Array(DType::F32, s) { fill(values.data(), values.size() * 4); }
    Array(Shape s, const std::vector<int32_t>& values) : Array(DType::I32, s) {
        fill(values.data(), values.size() * 4);
    }

    TensorView view() { return {bytes.data(), dtype, shape, slot_stride}; }
    template <class T>
    T* as() {
        return reinterpret_cast<T*>(bytes.data());
    }
    std::vector<float> floats() { return {as<float>(), as<float>() + bytes.size() / sizeof(float)}; }

  private:
    void fill(const void* src, size_t n) {
        if (n != bytes.size()) throw std::logic_error("an array's values do not fit its shape");
        if (n > 0) std::memcpy(bytes.data(), src, n);
    }
};

/// Runs one op into `out` and keeps what it reported.
struct OpRun {
    CallStatus status;

    OpRun(Op op, const OpParams& params, const std::vector<Array*>& in, const std::vector<Array*>& out) {
        OpCall call{.op = op, .params = &params, .in = {}, .out = {}, .scratch = nullptr, .status = &status};
        for (Array* a : in) call.in.push_back(a->view());
        for (Array* a : out) call.out.push_back(a->view());
        run_reference(call);
    }
};

/// The f32 result of an op that finds nothing wrong.
inline std::vector<float> run_floats(Op op, const OpParams& params, const std::vector<Array*>& in, const Shape& shape) {
    Array y(shape, std::vector<float>(static_cast<size_t>(shape.n_elements()), NAN));
    OpRun run(op, params, in, {&y});
    EXPECT_TRUE(run.status.ok()) << name(op) << ": " << describe(run.status.fault()) << ", row " << run.status.row();
    return y.floats();
}

using Random = std::mt19937;

inline std::vector<float> random_floats(Random& random, int64_t n, float deviation = 1.0f) {
    std::normal_distribution<float> normal(0.0f, deviation);
    std::vector<float> values(static_cast<size_t>(n));
    for (float& v : values) v = normal(random);
    return values;
}

inline Array random_array(Random& random, const Shape& shape, float deviation = 1.0f) {
    return {shape, random_floats(random, shape.n_elements(), deviation)};
}

/// Overwrites the scales of a tile of random bytes with plausible ones. Block values are then below about 1 in size.
template <class Tile>
void set_scales(Tile& t, Random& random) {
    std::uniform_real_distribution<float> scale(0.002f, 0.01f);
    for (int r = 0; r < kTileRows; ++r) {
        if constexpr (requires { t.e; }) {
            t.e[r] = static_cast<uint8_t>(122 + random() % 6);
        } else {
            const bool has_small_range = std::is_same_v<Tile, TileQ4_K> || std::is_same_v<Tile, TileQ6_K>;
            t.d[r] = f32_to_f16(scale(random) * (has_small_range ? 0.05f : 1.0f));
        }
        if constexpr (requires { t.m; }) t.m[r] = f32_to_f16(scale(random) - 0.05f);
        if constexpr (requires { t.dmin; }) t.dmin[r] = f32_to_f16(scale(random) * 0.1f);
    }
    if constexpr (std::is_same_v<Tile, TileMXFP8>)
        for (auto& group : t.q)
            for (auto& row : group)
                for (uint8_t& code : row)
                    if ((code & 0x7f) == 0x7f) code = 0x3a;  // a NaN
}

/// Weights of any type: tiles of random bytes (padding included: it must not matter), or normal floats.
inline Array random_weight(Random& random, DType dtype, const Shape& shape) {
    Array w(dtype, shape);
    if (shape.rank() == 3) w.slot_stride = slice_bytes(dtype, shape);
    if (is_block(dtype)) {
        for (std::byte& b : w.bytes) b = static_cast<std::byte>(random());
        with_tile(dtype, [&]<class Tile>(const Tile*) {
            for (size_t i = 0; i < w.bytes.size() / sizeof(Tile); ++i) set_scales(w.as<Tile>()[i], random);
        });
        return w;
    }
    const auto values = random_floats(random, shape.n_elements(), 0.3f);
    for (size_t i = 0; i < values.size(); ++i) {
        if (dtype == DType::F32) w.as<float>()[i] = values[i];
        if (dtype == DType::F16) w.as<uint16_t>()[i] = f32_to_f16(values[i]);
        if (dtype == DType::BF16) w.as<uint16_t>()[i] = f32_to_bf16(values[i]);
    }
    return w;
}

/// Value (row, k) of a [n_out, n_in] weight in float64, as the two parts that a dot product adds: scale · integer (or
/// the value) and -minimum.
struct WeightValue {
    double main = 0, minimum = 0;
};
inline WeightValue weight_value(Array& w, int64_t row, int64_t k) {
    const int64_t n_in = w.shape[-1];
    if (w.dtype == DType::F32) return {w.as<float>()[row * n_in + k], 0};
    if (w.dtype == DType::F16) return {f16_to_f32(w.as<uint16_t>()[row * n_in + k]), 0};
    if (w.dtype == DType::BF16) return {bf16_to_f32(w.as<uint16_t>()[row * n_in + k]), 0};
    return with_tile(w.dtype, [&]<class Tile>(const Tile*) {
        const int64_t len = info(w.dtype).block_len;
        const Tile& t = w.as<Tile>()[row / 16 * ceil_div(n_in, len) + k / len];
        const int r = static_cast<int>(row % 16), at = static_cast<int>(k % len);
        if constexpr (std::is_same_v<Tile, TileMXFP8>)
            return WeightValue{value(t, r, at), 0};
        else {
            double main = static_cast<double>(sub_scale(t, at / 32, r)) * quant(t, r, at);
            if constexpr (std::is_same_v<Tile, TileQ6_K>) main *= t.sc[at / 16][r];
            return WeightValue{main, -static_cast<double>(sub_min(t, at / 32, r))};
        }
    });
}

/// What a weight type multiplies with: x itself, or scale · int8 for types with an integer dot product.
inline std::vector<double> activation_values(DType weight, const float* x, int64_t n) {
    std::vector<double> values(x, x + n);
    if (!is_block(weight) || weight == DType::MXFP8) return values;
    for (int64_t begin = 0; begin < n; begin += kActivationBlock) {
        int8_t q[kActivationBlock];
        const auto count = static_cast<int>(std::min<int64_t>(kActivationBlock, n - begin));
        const double scale = quantize_activation_block(x + begin, count, q);
        for (int i = 0; i < count; ++i) values[static_cast<size_t>(begin + i)] = scale * q[i];
    }
    return values;
}

/// A dot product in float64, and how far float32 may be from it: each term passes at most ceil(terms / 8) fused steps
/// of its partial sum (two per block for types with a minimum), three additions, and the product of scales.
struct Dot {
    double value = 0, tolerance = 0;
};
inline Dot exact_dot(Array& w, int64_t row, const float* x) {
    const int64_t n_in = w.shape[-1];
    const bool by_block = is_block(w.dtype);
    const auto activations = activation_values(w.dtype, x, n_in);
    double sum = 0, magnitude = 0;
    for (int64_t k = 0; k < n_in; ++k) {
        const auto [main, minimum] = weight_value(w, row, k);
        const double a = activations[static_cast<size_t>(k)];
        sum += (main + minimum) * a;
        magnitude += (std::fabs(main) + std::fabs(minimum)) * std::fabs(a);
    }
    const int64_t blocks = ceil_div(n_in, 32);
    int64_t steps = ceil_div(n_in, 8);
    if (by_block) steps = w.dtype == DType::MXFP8 ? 32 * ceil_div(blocks, 8) : 2 * ceil_div(blocks, 8);
    return {sum, static_cast<double>(steps + 4) * kEps * magnitude};
}

}  // namespace ggmlx::test
