// What statements do.

#include "src/chat/access.h"
#include "src/chat/compare.h"
#include "src/chat/evaluator.h"
#include "src/chat/loop.h"
#include "src/chat/python_text.h"

namespace llm::jinja {
namespace {

/// A macro as a value; it sees the variables of where it was defined.
struct Macro : Object {
    static constexpr ObjectKind kKind = ObjectKind::Macro;
    Macro(Evaluator& e, const MacroDefinition& d, ScopePtr s)
        : Object(kKind), evaluator(e), definition(d), scope(std::move(s)) {}

    Value call(Runtime& runtime, Arguments& arguments) override {
        return runtime.string(evaluator.call_macro(definition, scope, arguments));
    }
    std::optional<Value> attribute(Runtime& runtime, std::string_view name) override {
        return name == "name" ? std::optional<Value>(runtime.string(definition.name)) : std::nullopt;
    }

    std::string repr() override {
        return definition.name.empty() ? "<Macro anonymous>" : fmt::format("<Macro {}>", repr_of_text(definition.name));
    }

    Evaluator& evaluator;
    const MacroDefinition& definition;
    ScopePtr scope;
};

/// Takes an argument by name out of the named ones.
std::optional<Value> take_named(Arguments& arguments, std::string_view name) {
    for (auto it = arguments.named.begin(); it != arguments.named.end(); ++it) {
        if (it->first != name) continue;
        Value value = std::move(it->second);
        arguments.named.erase(it);
        return value;
    }
    return std::nullopt;
}

}  // namespace

const Value* Scope::find(NameId name) const {
    for (const Scope* scope = this; scope; scope = scope->outer_.get())
        for (const auto& [id, value] : scope->variables_)
            if (id == name) return &value;
    return nullptr;
}

void Scope::set(NameId name, Value value) {
    for (auto& [id, old] : variables_) {
        if (id != name) continue;
        old = std::move(value);
        return;
    }
    variables_.emplace_back(name, std::move(value));
}

Evaluator::Evaluator(Runtime& runtime, const Ast& ast, const std::vector<std::optional<Value>>& globals)
    : runtime_(runtime), ast_(ast), top_(std::make_shared<Scope>(nullptr)) {
    for (NameId name = 0; name < globals.size(); ++name)
        if (globals[name]) top_->set(name, *globals[name]);
}

Text Evaluator::run() {
    return capture([&] { execute(ast_.body, top_); });
}

template <class Action>
Text Evaluator::capture(Action&& action) {
    TextBuilder buffer;
    TextBuilder* const outer = std::exchange(out_, &buffer);
    action();
    out_ = outer;
    buffered_bytes_ -= buffer.size();
    return buffer.take();
}

Text Evaluator::capture(const Body& body, const ScopePtr& scope, Flow& flow) {
    return capture([&] { flow = execute(body, std::make_shared<Scope>(scope)); });
}

void Evaluator::print(const Text& text) {
    const size_t n = text.bytes.size();
    runtime_.spend_bytes(n);
    buffered_bytes_ += n;
    if (buffered_bytes_ > runtime_.limits().max_output)
        refuse("the output is too long (more than {} bytes)", runtime_.limits().max_output);
    out_->append(text);
}

/// What a filter block or call block gives is not turned into text.
void Evaluator::print_string(const Value& value) {
    if (!value.is_string()) refuse("sequence item 0: expected str instance, {} found", type_name(value));
    print(value.text());
}

Evaluator::Flow Evaluator::execute(const Body& body, const ScopePtr& scope) {
    for (const Statement& statement : body)
        if (const Flow flow = execute(statement, scope); flow != Flow::Normal) return flow;
    return Flow::Normal;
}

Evaluator::Flow Evaluator::execute(const Statement& statement, const ScopePtr& scope) {
    const Runtime::Level level(runtime_);
    runtime_.spend(1);
    line_ = statement.line;
    return std::visit([&](const auto& node) { return run(node, scope); }, statement.node);
}

Evaluator::Flow Evaluator::run(const TextPtr& text, const ScopePtr&) {
    print(*text);
    return Flow::Normal;
}

Evaluator::Flow Evaluator::run(const Print& node, const ScopePtr& scope) {
    const Value value = evaluate(*node.value, scope);
    print(*to_string(runtime_, value));
    return Flow::Normal;
}

Evaluator::Flow Evaluator::run(const If& node, const ScopePtr& scope) {
    for (const auto& [condition, body] : node.branches)
        if (truthy(evaluate(*condition, scope))) return execute(body, scope);
    return execute(node.otherwise, scope);
}

void Evaluator::loop_over(const For& node, const Value& iterable, const ScopePtr& scope, int64_t depth) {
    Loop* loop = runtime_.make<Loop>(*this, node, items_of(runtime_, iterable), scope, depth);
    bool completed = false;  // a turn; one that ends with break or continue does not count, as in jinja2
    while (loop->advance()) {
        const auto inner = std::make_shared<Scope>(scope);
        inner->set(kLoopName, loop);
        assign(node.target, loop->current(), inner);
        const Flow flow = execute(node.body, inner);
        if (flow == Flow::Break) break;
        completed = completed || flow == Flow::Normal;
    }
    loop->release();
    if (!completed) execute(node.otherwise, std::make_shared<Scope>(scope));
}

Evaluator::Flow Evaluator::run(const For& node, const ScopePtr& scope) {
    loop_over(node, evaluate(*node.iterable, scope), scope, 0);
    return Flow::Normal;
}

Text Evaluator::run_loop(const For& node, const Value& iterable, const ScopePtr& scope, int64_t depth) {
    const Runtime::Level level(runtime_);
    return capture([&] { loop_over(node, iterable, scope, depth); });
}

void Evaluator::assign(const Target& target, const Value& value, const ScopePtr& scope) {
    if (target.is_tuple) {
        require_defined(value);
        if (!is_iterable(value)) refuse("cannot unpack non-iterable {} object", type_name(value));
        const auto items = items_of(runtime_, value);
        if (items.size() > target.targets.size())
            refuse("too many values to unpack (expected {})", target.targets.size());
        if (items.size() < target.targets.size())
            refuse("not enough values to unpack (expected {}, got {})", target.targets.size(), items.size());
        for (size_t i = 0; i < items.size(); ++i) assign(target.targets[i], items[i], scope);
    } else if (target.attribute.empty()) {
        scope->set(target.name, value);
    } else {
        const Value* found = scope->find(target.name);
        Namespace* space = found ? found->as<Namespace>() : nullptr;
        if (!space) refuse("cannot assign attribute on non-namespace object");
        space->attributes.set(runtime_, runtime_.string(target.attribute), value);
    }
}

Evaluator::Flow Evaluator::run(const Assign& node, const ScopePtr& scope) {
    const int line = line_;
    const Value value = evaluate(*node.value, scope);
    line_ = line;
    assign(node.target, value, scope);
    return Flow::Normal;
}

Value Evaluator::filtered(const ExprPtr& filter, Text text, const ScopePtr& scope) {
    Value output = runtime_.string(std::move(text));
    if (!filter) return output;
    std::swap(block_output_, output);
    Value result = evaluate(*filter, scope);
    std::swap(block_output_, output);
    return result;
}

Evaluator::Flow Evaluator::run(const AssignBody& node, const ScopePtr& scope) {
    Flow flow = Flow::Normal;
    Text text = capture(node.body, scope, flow);
    if (flow == Flow::Normal) assign(node.target, filtered(node.filter, std::move(text), scope), scope);
    return flow;
}

Evaluator::Flow Evaluator::run(const FilterBlock& node, const ScopePtr& scope) {
    Flow flow = Flow::Normal;
    Text text = capture(node.body, scope, flow);
    if (flow == Flow::Normal) print_string(filtered(node.filter, std::move(text), scope));
    return flow;
}

Value Evaluator::value_of(const MacroDefinition& macro, const ScopePtr& scope) {
    return runtime_.make<Macro>(*this, macro, scope);
}

Evaluator::Flow Evaluator::run(const MacroDefinition& node, const ScopePtr& scope) {
    scope->set(node.id, value_of(node, scope));
    return Flow::Normal;
}

Evaluator::Flow Evaluator::run(const CallBlock& node, const ScopePtr& scope) {
    const Runtime::Level level(runtime_);
    line_ = node.call->line;
    const Value result = call(std::get<Call>(node.call->node), value_of(node.caller, scope), scope);
    print_string(result);
    return Flow::Normal;
}

Evaluator::Flow Evaluator::run(const With& node, const ScopePtr& scope) {
    const auto inner = std::make_shared<Scope>(scope);
    for (const auto& [target, value] : node.assignments) assign(target, evaluate(*value, scope), inner);
    return execute(node.body, inner);
}

Evaluator::Flow Evaluator::run(const Generation& node, const ScopePtr& scope) {
    return execute(node.body, std::make_shared<Scope>(scope));
}

Text Evaluator::call_macro(const MacroDefinition& macro, const ScopePtr& scope, Arguments& arguments) {
    const Runtime::Level level(runtime_);
    const Signature& signature = macro.signature;
    const size_t n = signature.parameters.size(), n_given = std::min(n, arguments.positional.size());
    const auto inner = std::make_shared<Scope>(scope);
    std::vector<std::optional<Value>> given(n);
    for (size_t i = 0; i < n; ++i)
        given[i] = i < n_given ? arguments.positional[i] : take_named(arguments, signature.parameter_names[i]);
    if (signature.uses_caller)
        inner->set(kCallerName, take_named(arguments, "caller").value_or(undefined("No caller defined")));
    if (signature.uses_kwargs) {
        Dict* kwargs = runtime_.dict();
        for (const auto& [name, value] : arguments.named) kwargs->set(runtime_, runtime_.string(name), value);
        inner->set(kKwargsName, kwargs);
    } else if (!arguments.named.empty()) {
        refuse("macro '{}' takes no keyword argument '{}'", macro.name, arguments.named.front().first);
    }
    if (signature.uses_varargs) {
        const auto rest = arguments.positional.begin() + static_cast<std::ptrdiff_t>(n_given);
        inner->set(kVarargsName, runtime_.list({rest, arguments.positional.end()}, ListType::Tuple));
    } else if (arguments.positional.size() > n) {
        refuse("macro '{}' takes not more than {} argument(s)", macro.name, n);
    }
    const size_t first_default = n - signature.defaults.size();
    for (size_t i = 0; i < n; ++i) {
        if (!given[i] && i >= first_default) given[i] = evaluate(*signature.defaults[i - first_default], inner);
        if (!given[i])
            given[i] = undefined(fmt::format("parameter '{}' was not provided", signature.parameter_names[i]));
        inner->set(signature.parameters[i], *given[i]);
    }
    return capture([&] { execute(macro.body, inner); });
}

}  // namespace llm::jinja
