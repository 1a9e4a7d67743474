#include "tools/chat/settings.h"

#include <fmt/core.h>

#include <charconv>
#include <vector>

#include "ggmlx/core/suggest.h"
#include "tools/args.h"

namespace cli {
namespace {

template <class Number>
Number parse_setting(std::string_view name, const std::string& value) {
    Number number{};
    const char* end = value.data() + value.size();
    const auto [last, error] = std::from_chars(value.data(), end, number);
    if (error != std::errc() || last != end || value.empty())
        throw UsageError(fmt::format("/set {}: \"{}\" is not a number it can take", name, value));
    return number;
}

bool parse_switch(std::string_view name, const std::string& value) {
    if (value != "on" && value != "off")
        throw UsageError(fmt::format("/set {}: \"{}\" is neither on nor off", name, value));
    return value == "on";
}

/// Calls visit(name, value) for each setting.
template <class Settings, class Visit>
void for_each_setting(Settings& settings, Visit visit) {
    auto& sampling = settings.generate.sampling;
    visit("temp", sampling.temperature);
    visit("top-k", sampling.top_k);
    visit("top-p", sampling.top_p);
    visit("min-p", sampling.min_p);
    visit("repeat-penalty", sampling.repeat_penalty);
    visit("repeat-last-n", sampling.repeat_last_n);
    visit("presence-penalty", sampling.presence_penalty);
    visit("frequency-penalty", sampling.frequency_penalty);
    visit("seed", sampling.seed);
    visit("predict", settings.generate.max_tokens);
    visit("timings", settings.show_timings);
}

void assign(std::string_view name, const std::string& value, bool& to) { to = parse_switch(name, value); }
template <class Number>
void assign(std::string_view name, const std::string& value, Number& to) {
    to = parse_setting<Number>(name, value);
}

std::string shown(bool value) { return value ? "on" : "off"; }
template <class Number>
std::string shown(Number value) {
    return fmt::format("{}", value);
}

}  // namespace

void change_setting(ChatSettings& settings, std::string_view name, const std::string& value) {
    ChatSettings changed = settings;
    bool found = false;
    std::vector<std::string> names;
    for_each_setting(changed, [&](const char* candidate, auto& to) {
        names.push_back(candidate);
        if (name != candidate) return;
        assign(name, value, to);
        found = true;
    });
    if (!found) throw UsageError(fmt::format("/set: there is no setting {}{}", name, ggmlx::did_you_mean(name, names)));
    llm::check(changed.generate.sampling);
    if (changed.generate.max_tokens < -1) throw UsageError("/set predict: a number of tokens, or -1 for no limit");
    settings = std::move(changed);
}

std::string list_settings(const ChatSettings& settings) {
    std::string lines;
    for_each_setting(settings, [&](const char* name, const auto& value) {
        lines += fmt::format("{}{:<18} {}", lines.empty() ? "" : "\n", name, shown(value));
    });
    return lines;
}

}  // namespace cli
