#include "src/chat/loop.h"

#include "src/chat/access.h"
#include "src/chat/arguments.h"
#include "src/chat/compare.h"

namespace llm::jinja {

Loop::Loop(Evaluator& evaluator, const For& node, std::vector<Value> items, ScopePtr scope, int64_t depth)
    : Object(kKind),
      evaluator_(evaluator),
      node_(node),
      source_(std::move(items)),
      scope_(std::move(scope)),
      depth_(depth) {
    counted_ = 2 * source_.size();
    evaluator_.runtime().grow(counted_);
}

void Loop::release() {
    final_length_ = static_cast<int64_t>(taken_.size());
    released_ = true;
    std::vector<Value>().swap(source_);
    std::vector<Value>().swap(taken_);
    next_ = 0;
    evaluator_.runtime().shrink(counted_);
}

bool Loop::take() {
    while (next_ < source_.size()) {
        evaluator_.runtime().spend(1);
        const Value& item = source_[next_++];
        if (node_.condition) {
            const auto inner = std::make_shared<Scope>(scope_);
            evaluator_.assign(node_.target, item, inner);
            if (!truthy(evaluator_.evaluate(*node_.condition, inner))) continue;
        }
        taken_.push_back(item);
        return true;
    }
    return false;
}

bool Loop::advance() {
    if (!has_next()) return false;
    ++index_;
    return true;
}

int64_t Loop::n_items() {
    if (released_) return final_length_;
    while (take()) {
    }
    return static_cast<int64_t>(taken_.size());
}

/// True if the values differ from those of the last call.
Value Loop::changed(Runtime& runtime, const Arguments& arguments) {
    List* values = runtime.list(arguments.positional, ListType::Tuple);
    if (last_changed_ && equal(runtime, *last_changed_, values)) return false;
    last_changed_ = values;
    return true;
}

std::optional<Value> Loop::attribute(Runtime& runtime, std::string_view name) {
    if (name == "index") return index_ + 1;
    if (name == "index0") return index_;
    if (name == "first") return index_ == 0;
    if (name == "last") return released_ || !has_next();
    if (name == "length") return n_items();
    if (name == "revindex") return n_items() - index_;
    if (name == "revindex0") return n_items() - index_ - 1;
    if (name == "depth") return depth_ + 1;
    if (name == "depth0") return depth_;
    if (name == "previtem")
        return index_ > 0 && !released_ ? taken_[static_cast<size_t>(index_ - 1)]
                                        : undefined("there is no previous item");
    if (name == "nextitem")
        return !released_ && has_next() ? taken_[static_cast<size_t>(index_ + 1)] : undefined("there is no next item");
    if (name == "cycle")
        return runtime.make<Function>("cycle", [this](Runtime&, Arguments& arguments) {
            if (arguments.positional.empty()) refuse("no items for cycling given");
            return arguments.positional[static_cast<size_t>(index_) % arguments.positional.size()];
        });
    if (name == "changed")
        return runtime.make<Function>("changed",
                                      [this](Runtime& rt, Arguments& arguments) { return changed(rt, arguments); });
    return std::nullopt;
}

Value Loop::call(Runtime& runtime, Arguments& arguments) {
    const Bound bound("loop", arguments, {"iterable"}, 1);
    if (!node_.recursive) refuse("The loop must have the 'recursive' marker to be called recursively.");
    return runtime.string(evaluator_.run_loop(node_, bound.value(0), scope_, depth_ + 1));
}

}  // namespace llm::jinja
