#include "src/chat/globals.h"

#include <array>

#include "src/chat/access.h"
#include "src/chat/arguments.h"
#include "src/chat/compare.h"
#include "src/chat/method_table.h"
#include "src/chat/python_text.h"

namespace llm::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;  // jinja2's sandbox has the same

Value range(Runtime& runtime, Arguments& arguments) {
    const Bound bound("range", arguments, {"start", "stop", "step"}, 1);
    const bool one = !bound.has(1);
    const int64_t start = one ? 0 : bound.integer_or(0, 0), stop = bound.integer_or(one ? 0 : 1, 0);
    const int64_t step = bound.integer_or(2, 1);
    if (step == 0) refuse("range() arg 3 must not be zero");
    std::vector<Value> items;
    for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
        if (static_cast<int64_t>(items.size()) == kMaxRange)
            refuse("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", kMaxRange);
        items.emplace_back(i);
        if (__builtin_add_overflow(i, step, &i)) break;
    }
    runtime.spend(items.size() / 4);
    List* list = runtime.list(std::move(items), ListType::Range);
    list->start = start;
    list->stop = stop;
    list->step = step;
    return list;
}

/// dict(mapping or pairs, name=value …)
void fill(Runtime& runtime, Dict& dict, const Arguments& arguments) {
    if (arguments.positional.size() > 1)
        refuse("dict expected at most 1 argument, got {}", arguments.positional.size());
    for (const Value& from : arguments.positional) {
        require_defined(from);
        if (const Dict* other = from.as<Dict>()) {
            for (const auto& [key, value] : other->entries) dict.set(runtime, key, value);
            continue;
        }
        for (const Value& item : items_of(runtime, from)) {
            const auto pair = items_of(runtime, item);
            if (pair.size() != 2)
                refuse("dictionary update sequence element has length {}; 2 is required", pair.size());
            dict.set(runtime, pair[0], pair[1]);
        }
    }
    for (const auto& [name, value] : arguments.named) dict.set(runtime, runtime.string(name), value);
}

Value make_dict(Runtime& runtime, Arguments& arguments) {
    Dict* dict = runtime.dict();
    fill(runtime, *dict, arguments);
    return dict;
}

Value make_namespace(Runtime& runtime, Arguments& arguments) {
    Namespace* space = runtime.make<Namespace>();
    fill(runtime, space->attributes, arguments);
    return space;
}

struct Cycler : Object {
    explicit Cycler(std::vector<Value> v) : Object(ObjectKind::Cycler), items(std::move(v)) {}
    std::optional<Value> attribute(Runtime& runtime, std::string_view name) override {
        if (name == "current") return items[at];
        if (name == "next")
            return runtime.make<Function>("next", [this](Runtime&, Arguments&) {
                const Value value = items[at];
                at = (at + 1) % items.size();
                return value;
            });
        if (name == "reset")
            return runtime.make<Function>("reset", [this](Runtime&, Arguments&) -> Value {
                at = 0;
                return None{};
            });
        return std::nullopt;
    }
    std::vector<Value> items;
    size_t at = 0;
};

Value make_cycler(Runtime& runtime, Arguments& arguments) {
    if (arguments.positional.empty()) refuse("at least one item has to be provided");
    runtime.grow(arguments.positional.size());
    return runtime.make<Cycler>(arguments.positional);
}

/// Empty the first time it is called, the separator from then on.
struct Joiner : Object {
    explicit Joiner(Value s) : Object(ObjectKind::Joiner), separator(std::move(s)) {}
    Value call(Runtime& runtime, Arguments&) override {
        if (std::exchange(used, true)) return separator;
        return runtime.string(std::string());
    }
    Value separator;
    bool used = false;
};

Value make_joiner(Runtime& runtime, Arguments& arguments) {
    const Bound bound("joiner", arguments, {"sep"});
    return runtime.make<Joiner>(bound.value_or(0, runtime.string(", ")));
}

Value raise_exception(Runtime& runtime, Arguments& arguments) {
    const Bound bound("raise_exception", arguments, {"message"}, 1);
    refuse("{}", to_text(runtime, bound.value(0)).bytes);
}

Value strftime_now(Runtime& runtime, Arguments& arguments) {
    const Bound bound("strftime_now", arguments, {"format"}, 1);
    std::string format = bound.text(0).bytes;
    if (format.size() > 1000) refuse("strftime_now: the format is too long");
    if (format.empty()) return runtime.string(std::string());
    format += ' ';  // so that an empty result differs from one that has no room
    std::array<char, 16384> buffer;
    const size_t n = std::strftime(buffer.data(), buffer.size(), format.c_str(), &runtime.now);
    if (n == 0) refuse("strftime_now: the result is too long");
    return runtime.string(std::string(buffer.data(), n - 1));
}

using Global = Value (*)(Runtime&, Arguments&);

constexpr std::pair<std::string_view, Global> kGlobals[] = {
    {"range", range},
    {"dict", make_dict},
    {"namespace", make_namespace},
    {"cycler", make_cycler},
    {"joiner", make_joiner},
    {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
};

}  // namespace

std::optional<Value> global_function(Runtime& runtime, std::string_view name) {
    const Global function = find_in(kGlobals, name);
    if (!function) return std::nullopt;
    return Value(runtime.make<Function>(std::string(name), function));
}

}  // namespace llm::jinja
