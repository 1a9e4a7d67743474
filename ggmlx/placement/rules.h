#pragma once
// Which device every weight lives on: rules REGEX[@EXPERTS]=DEVICE, the first that matches wins. Knows nothing of
// budgets.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ggmlx/core/tensor.h"

namespace ggmlx {

/// Index into the list of devices that placement and plan are given.
using DeviceId = int32_t;

struct PlacementRule {
    std::string text;                                  ///< as the user wrote it
    std::string pattern;                               ///< PCRE2, searched in the tensor's name
    std::vector<std::pair<int64_t, int64_t>> experts;  ///< inclusive ranges; empty: all
    std::string device;                                ///< lower case
};

/// Splits one -ot argument into rules at commas (a rule ends at the first `=NAME` followed by a comma or the end; the
/// last `=` of a rule splits it; `\x2c` writes a comma that this would mistake). Throws invalid_argument naming the
/// rule and what is wrong with it: no `=`, a bad expert range, a pattern PCRE2 refuses (with position).
std::vector<PlacementRule> parse_rules(std::string_view argument);

/// Where one weight lives.
struct Home {
    std::vector<DeviceId> devices;  ///< one entry, or one per expert of a stacked tensor that is split
    std::vector<int32_t> rules;     ///< parallel to devices: the rule that decided, -1 for the default

    bool is_split() const { return devices.size() > 1; }
    DeviceId device_of(int64_t expert) const { return devices[is_split() ? static_cast<size_t>(expert) : 0]; }
};

struct Placement {
    std::vector<Home> homes;            ///< by tensor id of the TensorSet
    std::vector<int64_t> rule_matches;  ///< tensors each rule matched by name, decided or not
    const Home& operator[](Tensor t) const { return homes[static_cast<size_t>(t.info().id)]; }
    /// Whether every expert of one stacked tensor lives where the same expert of the other does.
    bool same_homes(Tensor a, Tensor b) const;
};

/// Gives every weight and state of the set a home. States follow rules that match their names, else `default_device`.
/// Throws invalid_argument naming the rule: a device that is not in device_names (listing them), a rule that matches no
/// tensor (with the nearest names), experts beyond a tensor's count or asked of a tensor that has none, a pattern whose
/// search explodes.
Placement place(const TensorSet& tensors, std::span<const PlacementRule> rules,
                std::span<const std::string> device_names, DeviceId default_device);

}  // namespace ggmlx
