#include "ggmlx/placement/rules.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>

#include "ggmlx/core/regex.h"
#include "ggmlx/core/suggest.h"

namespace ggmlx {
namespace {

bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::string_view trim(std::string_view s) {
    while (!s.empty() && std::isspace(static_cast<unsigned char>(s.front()))) s.remove_prefix(1);
    while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back()))) s.remove_suffix(1);
    return s;
}

/// Where the rule at the front of `text` ends: after the first =NAME that a comma or the end follows.
size_t rule_length(std::string_view text) {
    for (size_t eq = text.find('='); eq != std::string_view::npos; eq = text.find('=', eq + 1)) {
        size_t end = eq + 1;
        while (end < text.size() && is_name_char(text[end])) ++end;
        if (end > eq + 1 && (end == text.size() || text[end] == ',')) return end;
    }
    return text.size();
}

std::optional<int64_t> number(std::string_view text) {
    int64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && value >= 0 ? std::optional(value) : std::nullopt;
}

std::vector<std::pair<int64_t, int64_t>> parse_expert_ranges(std::string_view list, std::string_view rule) {
    std::vector<std::pair<int64_t, int64_t>> ranges;
    while (true) {
        const size_t comma = list.find(',');
        const std::string_view item = list.substr(0, comma);
        const size_t dash = item.find('-');
        const auto first = number(item.substr(0, dash));
        const auto last = dash == std::string_view::npos ? first : number(item.substr(dash + 1));
        require(first && last && *first <= *last, ErrorKind::InvalidArgument,
                "placement rule '{}': '{}' is no range of experts; write for example @0-63,200", rule, item);
        ranges.emplace_back(*first, *last);
        if (comma == std::string_view::npos) return ranges;
        list.remove_prefix(comma + 1);
    }
}

PlacementRule parse_rule(std::string_view text) {
    const size_t eq = text.rfind('=');
    require(eq != std::string_view::npos && eq > 0 && eq + 1 < text.size(), ErrorKind::InvalidArgument,
            "placement rule '{}' is not of the form REGEX[@EXPERTS]=DEVICE", text);
    PlacementRule rule{
        .text = std::string(text), .pattern = {}, .experts = {}, .device = std::string(trim(text.substr(eq + 1)))};
    for (char& c : rule.device) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    std::string_view left = trim(text.substr(0, eq));
    if (const size_t at = left.rfind('@'); at != std::string_view::npos) {
        rule.experts = parse_expert_ranges(left.substr(at + 1), text);
        left = left.substr(0, at);
    }
    require(!left.empty(), ErrorKind::InvalidArgument, "placement rule '{}' has no pattern; '.*' means every tensor",
            text);
    rule.pattern = std::string(left);
    try {
        Regex check(rule.pattern);
    } catch (const Error& e) {
        fail(ErrorKind::InvalidArgument, "placement rule '{}': {}", text, e.what());
    }
    return rule;
}

int64_t expert_count(Tensor t) { return t.info().role == Role::Expert ? t.dim(0) : 0; }

/// One rule while it is applied: what it matched so far.
struct ActiveRule {
    const PlacementRule* rule;
    Regex regex;
    DeviceId device;
    int64_t tensors = 0;  ///< matched by name
    int64_t stacked = 0;  ///< of these, with experts

    bool takes(int64_t expert) const {
        return rule->experts.empty() || std::any_of(rule->experts.begin(), rule->experts.end(), [&](const auto& range) {
                   return range.first <= expert && expert <= range.second;
               });
    }
};

std::vector<ActiveRule> activate(std::span<const PlacementRule> rules, std::span<const std::string> device_names) {
    std::vector<ActiveRule> active;
    for (const auto& rule : rules) {
        const auto it = std::find(device_names.begin(), device_names.end(), rule.device);
        if (it == device_names.end()) {
            std::string known;
            for (const auto& device : device_names) known += (known.empty() ? "" : ", ") + device;
            fail(ErrorKind::InvalidArgument, "placement rule '{}': there is no device '{}'; this machine has {}",
                 rule.text, rule.device, known);
        }
        active.push_back({&rule, Regex(rule.pattern), static_cast<DeviceId>(it - device_names.begin())});
    }
    return active;
}

/// The rules whose patterns match a tensor's name, as indices. Checks the experts they ask for.
std::vector<size_t> matching_rules(std::vector<ActiveRule>& rules, Tensor tensor) {
    std::vector<size_t> matching;
    const int64_t n_expert = expert_count(tensor);
    for (size_t i = 0; i < rules.size(); ++i) {
        ActiveRule& active = rules[i];
        bool matches = false;
        try {
            matches = active.regex.search(tensor.name());
        } catch (const Error& e) {
            fail(ErrorKind::InvalidArgument, "placement rule '{}': {}", active.rule->text, e.what());
        }
        if (!matches) continue;
        ++active.tensors;
        active.stacked += n_expert > 0;
        if (!active.rule->experts.empty() && n_expert == 0) continue;
        for (const auto& range : active.rule->experts)
            require(range.second < n_expert, ErrorKind::InvalidArgument,
                    "placement rule '{}': {} has experts 0-{}, there is no expert {}", active.rule->text, tensor.name(),
                    n_expert - 1, range.second);
        matching.push_back(i);
    }
    return matching;
}

/// First match wins, expert by expert where rules ask for some experts only.
Home decide(Tensor tensor, const std::vector<ActiveRule>& rules, const std::vector<size_t>& matching,
            DeviceId default_device) {
    auto choose = [&](int64_t expert) {
        for (size_t i : matching)
            if (rules[i].takes(expert)) return std::pair(rules[i].device, static_cast<int32_t>(i));
        return std::pair(default_device, int32_t{-1});
    };
    const bool by_expert =
        std::any_of(matching.begin(), matching.end(), [&](size_t i) { return !rules[i].rule->experts.empty(); });
    const int64_t n = by_expert ? expert_count(tensor) : 1;
    Home home;
    for (int64_t e = 0; e < n; ++e) {
        const auto [device, rule] = choose(by_expert ? e : 0);
        home.devices.push_back(device);
        home.rules.push_back(rule);
    }
    const bool one_device =
        std::all_of(home.devices.begin(), home.devices.end(), [&](DeviceId d) { return d == home.devices[0]; });
    const bool one_rule =
        std::all_of(home.rules.begin(), home.rules.end(), [&](int32_t r) { return r == home.rules[0]; });
    if (one_device && one_rule) home = {{home.devices[0]}, {home.rules[0]}};
    return home;
}

}  // namespace

std::vector<PlacementRule> parse_rules(std::string_view argument) {
    std::vector<PlacementRule> rules;
    while (true) {
        const size_t length = rule_length(argument);
        rules.push_back(parse_rule(trim(argument.substr(0, length))));
        if (length >= argument.size()) return rules;
        argument.remove_prefix(length + 1);
    }
}

bool Placement::same_homes(Tensor a, Tensor b) const {
    for (int64_t e = 0; e < a.dim(0); ++e)
        if ((*this)[a].device_of(e) != (*this)[b].device_of(e)) return false;
    return true;
}

Placement place(const TensorSet& tensors, std::span<const PlacementRule> rules,
                std::span<const std::string> device_names, DeviceId default_device) {
    auto active = activate(rules, device_names);
    Placement placement;
    std::vector<std::string> names;
    for (int32_t id = 0; id < tensors.size(); ++id) {
        const Tensor tensor = tensors[id];
        names.push_back(tensor.name());
        const auto matching = matching_rules(active, tensor);
        placement.homes.push_back(decide(tensor, active, matching, default_device));
    }
    for (const auto& rule : active) {
        require(rule.tensors > 0, ErrorKind::InvalidArgument, "placement rule '{}' matches no tensor{}",
                rule.rule->text, did_you_mean(rule.rule->pattern, names));
        require(rule.rule->experts.empty() || rule.stacked > 0, ErrorKind::InvalidArgument,
                "placement rule '{}' asks for single experts, but none of the {} tensors it matches has experts",
                rule.rule->text, rule.tensors);
        placement.rule_matches.push_back(rule.tensors);
    }
    return placement;
}

}  // namespace ggmlx
