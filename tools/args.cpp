#include "tools/args.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>

#include "ggmlx/core/suggest.h"

namespace cli {
namespace {

template <class Number>
std::optional<Number> number(std::string_view text) {
    if (text.starts_with('+')) text.remove_prefix(1);
    Number value{};
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

int64_t parse_int(std::string_view option, std::string_view text, IntRange range) {
    auto value = number<int64_t>(text);
    if (!value) throw UsageError(fmt::format("{}: \"{}\" is not a whole number", option, text));
    if (*value < range.min || *value > range.max)
        throw UsageError(range.max == IntRange{}.max
                             ? fmt::format("{}: {} is below {}", option, text, range.min)
                             : fmt::format("{}: {} is not between {} and {}", option, text, range.min, range.max));
    return *value;
}

double parse_real(std::string_view option, std::string_view text, RealRange range) {
    auto value = number<double>(text);
    if (!value || !std::isfinite(*value)) throw UsageError(fmt::format("{}: \"{}\" is not a number", option, text));
    if (*value < range.min || *value > range.max)
        throw UsageError(fmt::format("{}: {} is not between {} and {}", option, text, range.min, range.max));
    return *value;
}

std::string environment_name(std::string_view long_name) {
    std::string name = "GGMLX_";
    for (char c : long_name.substr(2))
        name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return name;
}

std::vector<std::string> split_names(std::string_view names) {
    std::vector<std::string> result;
    while (!names.empty()) {
        const size_t comma = std::min(names.find(','), names.size());
        result.emplace_back(names.substr(0, comma));
        names.remove_prefix(std::min(comma + 1, names.size()));
        while (names.starts_with(' ')) names.remove_prefix(1);
    }
    return result;
}

/// "-ngl" and the like, which CLI11 would read as -n gl.
bool is_alias(std::string_view name) { return name.size() > 2 && name[0] == '-' && name[1] != '-'; }

}  // namespace

struct Args::Impl {
    explicit Impl(std::string_view command, std::string_view summary)
        : name(command), app(std::string(summary), "ggmlx " + std::string(command)) {}

    /// Declares an option under all its names; aliases go into the help text, since CLI11 does not know them.
    CLI::Option* add(std::string_view names, bool takes_value, std::string_view type, std::string_view help,
                     std::function<void(const std::string&)> set);
    /// Rewrites arguments into the forms that CLI11 reads: "--long" "value", "-x" "value". Throws UsageError for an
    /// option that was not declared.
    std::vector<std::string> normalized(std::span<const std::string> arguments) const;
    void normalize_one(const std::string& argument, std::vector<std::string>& out, bool& value_follows) const;
    bool all_flags(std::string_view letters) const;
    [[noreturn]] void unknown(std::string_view option) const;

    struct Known {
        std::string canonical;  ///< what CLI11 knows it by
        bool takes_value;
    };
    std::string name;
    CLI::App app;
    std::map<std::string, Known, std::less<>> known{{"-h", {"-h", false}}, {"--help", {"--help", false}}};
    std::string* model = nullptr;
    std::string model_option;
};

CLI::Option* Args::Impl::add(std::string_view names, bool takes_value, std::string_view type, std::string_view help,
                             std::function<void(const std::string&)> set) {
    const auto all = split_names(names);
    const auto first_long =
        std::find_if(all.begin(), all.end(), [](const std::string& n) { return n.starts_with("--"); });
    const std::string canonical = first_long != all.end() ? *first_long : all.front();
    std::string plain, text(help);
    for (const std::string& option : all) {
        if (is_alias(option))
            text += " (also " + option + ")";
        else
            plain += (plain.empty() ? "" : ",") + option;
        known[option] = {is_alias(option) ? canonical : option, takes_value};
    }
    CLI::Option* option = nullptr;
    if (takes_value) {
        const CLI::callback_t each = [set](const std::vector<std::string>& values) {
            for (const std::string& value : values) set(value);
            return true;
        };
        option = app.add_option(plain, each, text);
        option->expected(1)->type_name(std::string(type))->allow_extra_args(false);
        option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    } else {
        option = app.add_flag_callback(
            plain, [set] { set("true"); }, text);
    }
    if (first_long != all.end()) option->envname(environment_name(*first_long));
    return option;
}

void Args::Impl::unknown(std::string_view option) const {
    std::vector<std::string> names;
    for (const auto& [known_name, entry] : known) names.push_back(known_name);
    throw UsageError(fmt::format("there is no option {}{}", option, ggmlx::did_you_mean(option, names)));
}

bool Args::Impl::all_flags(std::string_view letters) const {
    return std::all_of(letters.begin(), letters.end(), [&](char c) {
        auto it = known.find(std::string{'-', c});
        return it != known.end() && !it->second.takes_value;
    });
}

void Args::Impl::normalize_one(const std::string& argument, std::vector<std::string>& out, bool& value_follows) const {
    const size_t equals = argument.find('=');
    const std::string option = argument.substr(0, equals);
    if (auto it = known.find(option); it != known.end()) {
        if (equals == std::string::npos) {
            out.push_back(it->second.canonical);
            value_follows = it->second.takes_value;
        } else if (it->second.takes_value) {
            out.insert(out.end(), {it->second.canonical, argument.substr(equals + 1)});
        } else {
            throw UsageError(fmt::format("{} is a switch and takes no value", option));
        }
        return;
    }
    if (argument.starts_with("--") || argument.size() <= 2) unknown(option);
    if (all_flags(std::string_view(argument).substr(1))) return out.push_back(argument);  // -qv
    auto first = known.find(argument.substr(0, 2));
    const bool number_follows = std::isdigit(static_cast<unsigned char>(argument[2])) || argument[2] == '-';
    if (first == known.end() || !first->second.takes_value || !number_follows) unknown(option);
    out.insert(out.end(), {first->second.canonical, argument.substr(2)});  // -n128
}

std::vector<std::string> Args::Impl::normalized(std::span<const std::string> arguments) const {
    std::vector<std::string> out;
    bool value_follows = false;
    for (size_t i = 0; i < arguments.size(); ++i) {
        const std::string& argument = arguments[i];
        if (value_follows || argument.size() < 2 || argument[0] != '-') {
            out.push_back(argument);
            value_follows = false;
        } else if (argument == "--") {
            out.insert(out.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
            break;
        } else {
            normalize_one(argument, out, value_follows);
        }
    }
    if (value_follows) throw UsageError(fmt::format("{} needs a value", arguments.back()));
    return out;
}

Args::Args(std::string_view command, std::string_view summary, std::string_view examples)
    : impl_(std::make_unique<Impl>(command, summary)) {
    impl_->app.footer("Examples:\n" + std::string(examples));
    impl_->app.set_help_flag("-h,--help", "show this text");
    impl_->app.set_config("--config", "", "file of options, one `long-name = value` a line");
    impl_->known["--config"] = {"--config", true};
    impl_->app.allow_config_extras(CLI::config_extras_mode::error);
}
Args::~Args() = default;

void Args::positional(std::string_view name, std::string& value, std::string_view help) {
    impl_->app.add_option(std::string(name), value, std::string(help))->type_name("");
}

void Args::model(std::string& path, std::string_view what) {
    impl_->model = &path;
    positional("MODEL", path, what);
    impl_->add("-m,--model", true, "MODEL", "the same", [this](const std::string& text) { impl_->model_option = text; })
        ->envname("");
}

void Args::flag(std::string_view names, bool& value, std::string_view help) {
    impl_->add(names, false, "", help, [&value](const std::string&) { value = true; });
}

void Args::foreign(std::string_view names, bool takes_value, bool& given) {
    impl_->add(names, takes_value, "X", "", [&given](const std::string&) { given = true; })->group("")->envname("");
}

void Args::option(std::string_view names, std::string& value, std::string_view type, std::string_view help) {
    impl_->add(names, true, type, help, [&value](const std::string& text) { value = text; });
}

void Args::option(std::string_view names, std::vector<std::string>& values, std::string_view type,
                  std::string_view help) {
    impl_->add(names, true, type, help, [&values](const std::string& text) { values.push_back(text); });
}

void Args::option(std::string_view names, int64_t& value, IntRange range, std::string_view help) {
    impl_->add(names, true, "N", help, [&value, range, all = std::string(names)](const std::string& text) {
        value = parse_int(all, text, range);
    });
}

void Args::option(std::string_view names, std::optional<int64_t>& value, IntRange range, std::string_view help) {
    impl_->add(names, true, "N", help, [&value, range, all = std::string(names)](const std::string& text) {
        value = parse_int(all, text, range);
    });
}

void Args::option(std::string_view names, double& value, RealRange range, std::string_view help) {
    impl_->add(names, true, "X", help, [&value, range, all = std::string(names)](const std::string& text) {
        value = parse_real(all, text, range);
    });
}

void Args::option(std::string_view names, std::optional<double>& value, RealRange range, std::string_view help) {
    impl_->add(names, true, "X", help, [&value, range, all = std::string(names)](const std::string& text) {
        value = parse_real(all, text, range);
    });
}

void Args::size(std::string_view names, std::optional<uint64_t>& bytes, std::string_view help) {
    impl_->add(names, true, "SIZE", help,
               [&bytes, all = std::string(names)](const std::string& text) { bytes = parse_size(all, text); });
}

void Args::choice(std::string_view names, std::string& value, std::vector<std::string> allowed, std::string_view help) {
    const std::string list = fmt::format("{}", fmt::join(allowed, "|"));
    impl_->add(names, true, list, help, [&value, allowed, list, all = std::string(names)](const std::string& text) {
        if (std::find(allowed.begin(), allowed.end(), text) == allowed.end())
            throw UsageError(
                fmt::format("{}: \"{}\" is none of {}{}", all, text, list, ggmlx::did_you_mean(text, allowed)));
        value = text;
    });
}

void Args::common(Common& common) {
    flag("--json", common.json, "print the result as JSON");
    flag("-q,--quiet", common.quiet, "no progress and no notes");
    flag("-v,--verbose", common.verbose, "more notes");
}

bool Args::parse(std::span<const std::string> arguments) {
    auto normalized = impl_->normalized(arguments);
    std::reverse(normalized.begin(), normalized.end());  // CLI11 takes them from the back
    try {
        impl_->app.parse(std::move(normalized));
    } catch (const CLI::CallForHelp&) {
        fmt::print("{}", impl_->app.help());
        return false;
    } catch (const CLI::ExtrasError& error) {
        throw UsageError(fmt::format("too many arguments ({})", error.what()));
    } catch (const CLI::ParseError& error) {
        throw UsageError(error.what());
    }
    if (impl_->model) {
        std::string& path = *impl_->model;
        if (!path.empty() && !impl_->model_option.empty())
            throw UsageError(fmt::format("two models are given: {} and -m {}", path, impl_->model_option));
        if (path.empty()) path = impl_->model_option;
        if (const char* from_environment = std::getenv("GGMLX_MODEL"); path.empty() && from_environment)
            path = from_environment;
        if (path.empty()) throw UsageError("no model is given");
    }
    return true;
}

uint64_t parse_size(std::string_view option, std::string_view text) {
    std::string_view digits = text;
    double factor = 1;
    if (digits.size() > 1 && (digits.back() == 'B' || digits.back() == 'b')) digits.remove_suffix(1);
    if (digits.size() > 1 && digits.ends_with('i')) digits.remove_suffix(1);
    constexpr std::string_view kUnits = "KMGT";
    if (!digits.empty())
        if (size_t unit = kUnits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(digits.back()))));
            unit != kUnits.npos) {
            factor = std::ldexp(1.0, 10 * (static_cast<int>(unit) + 1));
            digits.remove_suffix(1);
        }
    auto value = number<double>(digits);
    if (!value || !(*value >= 0 && *value * factor < 0x1p63))
        throw UsageError(fmt::format("{}: \"{}\" is not a size such as 512M or 24G", option, text));
    return static_cast<uint64_t>(*value * factor);
}

std::string human_bytes(uint64_t bytes) {
    constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = static_cast<double>(bytes);
    size_t unit = 0;
    for (; value >= 999.5 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
    if (unit == 0) return fmt::format("{} B", bytes);
    return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, kUnits[unit]);
}

}  // namespace cli
