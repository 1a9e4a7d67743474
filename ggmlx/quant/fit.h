#pragma once
// Least-squares fits of a few values to small integers, shared by the quantizers. All sums run in eight fixed lanes, so
// a result has one value on every machine, and compilers vectorize them without being allowed to reorder.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ggmlx/core/float_types.h"

namespace ggmlx::fit {

inline constexpr int kLanes = 8;

/// Nearest integer, ties to even, for |v| < 2^22, without a library call.
inline float round_even(float v) {
    constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: one unit in the last place is 1
    return (v + kShift) - kShift;
}

/// The code for value v in units of the scale, within [low, high].
inline float code(float v, float low, float high) {
    v = v < low ? low : v;
    v = v > high ? high : v;
    return round_even(v);
}

/// The float16 nearest to v, never infinite.
inline uint16_t finite_f16(float v) { return f32_to_f16(std::clamp(v, -65504.0f, 65504.0f)); }

/// 1 / d, or 0 for a scale of zero: all codes are zero then.
inline float inverse(float d) { return d == 0.0f ? 0.0f : 1.0f / d; }

inline float sum_lanes(const float (&lane)[kLanes]) {
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/// A range of integer codes.
struct Codes {
    float low, high;
};

/// Sums that a fit of x to scale * q (+ offset) needs, with q the codes of (x - offset) * inverse_scale.
struct Sums {
    float q = 0, qq = 0, xq = 0;
};

template <int N>
Sums sums(const float* x, float inverse_scale, float offset, Codes range) {
    float q_lane[kLanes] = {}, qq_lane[kLanes] = {}, xq_lane[kLanes] = {};
    for (int i = 0; i < N; i += kLanes)
        for (int j = 0; j < kLanes; ++j) {
            const float q = code((x[i + j] - offset) * inverse_scale, range.low, range.high);
            q_lane[j] += q;
            qq_lane[j] += q * q;
            xq_lane[j] += x[i + j] * q;
        }
    return {sum_lanes(q_lane), sum_lanes(qq_lane), sum_lanes(xq_lane)};
}

/// Squared error of x against scale * q + offset with the nearest codes.
template <int N>
float squared_error(const float* x, float scale, float offset, Codes range) {
    const float inverse_scale = inverse(scale);
    float lane[kLanes] = {};
    for (int i = 0; i < N; i += kLanes)
        for (int j = 0; j < kLanes; ++j) {
            const float q = code((x[i + j] - offset) * inverse_scale, range.low, range.high);
            const float difference = x[i + j] - (scale * q + offset);
            lane[j] += difference * difference;
        }
    return sum_lanes(lane);
}

/// Writes the nearest codes as integers.
template <int N>
void store_codes(const float* x, float scale, float offset, Codes range, int8_t* q) {
    const float inverse_scale = inverse(scale);
    for (int i = 0; i < N; ++i)
        q[i] = static_cast<int8_t>(code((x[i] - offset) * inverse_scale, range.low, range.high));
}

/// The value of largest magnitude, with its sign; the positive one of two.
template <int N>
float extreme(const float* x) {
    float high[kLanes] = {}, low[kLanes] = {};
    for (int i = 0; i < N; i += kLanes)
        for (int j = 0; j < kLanes; ++j) {
            high[j] = x[i + j] > high[j] ? x[i + j] : high[j];
            low[j] = x[i + j] < low[j] ? x[i + j] : low[j];
        }
    const float highest = *std::max_element(high, high + kLanes), lowest = *std::min_element(low, low + kLanes);
    return -lowest > highest ? lowest : highest;
}

/// The scale for x ~ scale * q that is best among n_steps mappings of the extreme value to just inside and outside of
/// either end of the range, each followed by a least-squares fit of the scale to the codes it gives.
template <int N>
float best_scale(const float* x, Codes range, float first_level, float step, int n_steps) {
    const float largest = extreme<N>(x);
    if (std::fabs(largest) < 1e-30f) return 0.0f;
    float best_gain = -1.0f, best = 0.0f;
    for (float end : {range.low, range.high})
        for (int i = 0; i < n_steps; ++i) {
            const Sums s = sums<N>(x, end * (first_level + step * static_cast<float>(i)) / largest, 0.0f, range);
            const float gain = s.qq > 0.0f ? s.xq * (s.xq / s.qq) : 0.0f;  // what the fit takes off the sum of squares
            if (gain > best_gain) best_gain = gain, best = s.qq > 0.0f ? s.xq / s.qq : 0.0f;
        }
    return best;
}

/// x ~ scale * q + offset.
struct Line {
    float scale = 0, offset = 0;
};

/// A line and its squared error with the codes it was fitted to (the nearest codes can only be better).
struct LineFit {
    Line line;
    float error = 0;
};

/// Fits lines to N values; works on their distance from the mean so that a large common offset costs no precision.
template <int N>
class LineSearch {
  public:
    /// max_offset: the offset of a line is at most this.
    LineSearch(const float* x, Codes range, float max_offset) : range_(range) {
        float sum_x = 0.0f;
        for (int i = 0; i < N; ++i) sum_x += x[i];
        mean_ = sum_x / N;
        max_offset_ = max_offset - mean_;
        for (int i = 0; i < N; ++i) {
            y_[i] = x[i] - mean_;
            sum_y_ += y_[i];
            sum_yy_ += y_[i] * y_[i];
        }
    }

    /// The best line among fits that start from the range [low, high] of x, pulled in at either end by up to three
    /// times `pull` of its width, and a few refits of the best.
    Line best(float low, float high, float pull) const {
        constexpr int kSteps = 4, kRefits = 2;
        const float width = high - low, first = low - mean_;
        const Line whole{width / range_.high, first};
        LineFit best{whole, squared_error<N>(y_, whole.scale, whole.offset, range_)};
        auto consider = [&](const Line& start) {
            const LineFit fit = refit(start);
            if (fit.line.scale > 0.0f && fit.error < best.error) best = fit;
        };
        for (int a = 0; a < kSteps; ++a)
            for (int b = 0; b < kSteps; ++b) {
                const float pulled_low = pull * static_cast<float>(a), pulled_high = pull * static_cast<float>(b);
                consider({width * (1.0f - pulled_low - pulled_high) / range_.high, first + width * pulled_low});
            }
        for (int i = 0; i < kRefits; ++i) consider(best.line);
        return {best.line.scale, best.line.offset + mean_};
    }

  private:
    /// Least squares over the codes that `start` gives.
    LineFit refit(const Line& start) const {
        const Sums s = sums<N>(y_, inverse(start.scale), start.offset, range_);
        const float determinant = N * s.qq - s.q * s.q;
        if (determinant <= 0.0f) return {};
        Line line{(N * s.xq - s.q * sum_y_) / determinant, (sum_y_ * s.qq - s.q * s.xq) / determinant};
        if (line.offset > max_offset_) line = {(s.xq - max_offset_ * s.q) / s.qq, max_offset_};
        const float a = line.scale, b = line.offset;
        return {line, sum_yy_ - 2.0f * (a * s.xq + b * sum_y_) + a * a * s.qq + 2.0f * a * b * s.q + N * b * b};
    }

    Codes range_;
    float mean_ = 0, max_offset_ = 0, sum_y_ = 0, sum_yy_ = 0;
    float y_[N];
};

}  // namespace ggmlx::fit
