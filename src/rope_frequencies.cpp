// Rotary frequencies as transformers computes them: float32 throughout, in its order of operations, so that long
// contexts turn by the same angles. Only the power is rounded from float64 here (theirs is off by up to one ulp).

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ggmlx/core/error.h"
#include "src/config.h"

namespace llm {
namespace {

constexpr float kTwoPi = static_cast<float>(2 * std::numbers::pi);

/// theta^(2i / n_rot) for each pair i.
std::vector<float> pair_wavelengths(float theta, int64_t n_rot) {
    std::vector<float> result;
    for (int64_t k = 0; k < n_rot; k += 2) {
        const float exponent = static_cast<float>(k) / static_cast<float>(n_rot);
        result.push_back(static_cast<float>(std::pow(static_cast<double>(theta), static_cast<double>(exponent))));
    }
    return result;
}

/// Llama 3: long wavelengths are stretched, short ones kept, those between blended.
float stretch_llama3(float inv_freq, const RopeScaling& s) {
    const auto context = static_cast<float>(s.original_context);
    const float wavelength = kTwoPi / inv_freq;
    const float longest = context / s.low_freq_factor, shortest = context / s.high_freq_factor;
    if (wavelength > longest) return inv_freq / s.factor;
    if (wavelength < shortest) return inv_freq;
    const float smooth = (context / wavelength - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
    return (1.0f - smooth) * inv_freq / s.factor + smooth * inv_freq;
}

/// YaRN: pairs that turn often within the original context keep their frequency, slow ones are interpolated.
RopeFrequencies yarn(float theta, int64_t n_rot, const RopeScaling& s) {
    auto pair_with_rotations = [&](double rotations) {
        const double context = static_cast<double>(s.original_context);
        return static_cast<double>(n_rot) * std::log(context / (rotations * 2 * std::numbers::pi)) /
               (2 * std::log(static_cast<double>(theta)));
    };
    double low = pair_with_rotations(static_cast<double>(s.beta_fast));
    double high = pair_with_rotations(static_cast<double>(s.beta_slow));
    if (s.truncate) {
        low = std::floor(low);
        high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, static_cast<double>(n_rot - 1));
    if (low == high) high += 0.001;

    RopeFrequencies result;
    const auto wavelengths = pair_wavelengths(theta, n_rot);
    for (size_t i = 0; i < wavelengths.size(); ++i) {
        const float ramp = (static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low);
        const float kept = 1.0f - std::clamp(ramp, 0.0f, 1.0f);
        const float interpolated = 1.0f / (s.factor * wavelengths[i]), original = 1.0f / wavelengths[i];
        result.inv_freq.push_back(interpolated * (1.0f - kept) + original * kept);
    }
    const double automatic = s.factor <= 1.0f ? 1.0 : 0.1 * std::log(static_cast<double>(s.factor)) + 1.0;
    result.magnitude = s.attention_factor != 0.0f ? s.attention_factor : static_cast<float>(automatic);
    return result;
}

}  // namespace

RopeFrequencies rope_frequencies(float theta, int64_t n_rot, const RopeScaling& scaling) {
    ggmlx::require(n_rot > 0 && n_rot % 2 == 0, ggmlx::ErrorKind::InvalidArgument,
                   "rotary positions turn pairs of values, so {} values cannot be turned", n_rot);
    if (scaling.kind == RopeScaling::Kind::Yarn) return yarn(theta, n_rot, scaling);
    RopeFrequencies result;
    for (float wavelength : pair_wavelengths(theta, n_rot)) {
        const float inv_freq = 1.0f / wavelength;
        switch (scaling.kind) {
            case RopeScaling::Kind::Linear:
                result.inv_freq.push_back(inv_freq / scaling.factor);
                break;
            case RopeScaling::Kind::Llama3:
                result.inv_freq.push_back(stretch_llama3(inv_freq, scaling));
                break;
            default:
                result.inv_freq.push_back(inv_freq);
        }
    }
    return result;
}

}  // namespace llm
