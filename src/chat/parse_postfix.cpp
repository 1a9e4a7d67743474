// What may follow a value: .name, [key], (arguments), |filter, is test.

#include <algorithm>

#include "src/chat/filters.h"
#include "src/chat/parser.h"
#include "src/chat/tests.h"

namespace llm::jinja {
namespace {

uint32_t depth_of(const ExprPtr& child) { return child ? child->depth : 0; }

uint32_t depth_of(const CallArguments& arguments) {
    uint32_t depth = std::max(depth_of(arguments.list), depth_of(arguments.dict));
    for (const ExprPtr& value : arguments.positional) depth = std::max(depth, depth_of(value));
    for (const auto& [name, value] : arguments.named) depth = std::max(depth, depth_of(value));
    return depth;
}

}  // namespace

ExprPtr Parser::postfix(ExprPtr value) {
    while (true) {
        if (current().is_operator("."))
            value = attribute(std::move(value));
        else if (current().is_operator("["))
            value = subscript(std::move(value));
        else if (current().is_operator("("))
            value = call(std::move(value));
        else
            return value;
    }
}

ExprPtr Parser::filters_and_tests(ExprPtr value) {
    while (true) {
        if (current().is_operator("|"))
            value = filter_chain(std::move(value));
        else if (current().is_name("is"))
            value = test(std::move(value));
        else if (current().is_operator("("))
            value = call(std::move(value));
        else
            return value;
    }
}

ExprPtr Parser::attribute(ExprPtr value) {
    const int line = next().line;
    const uint32_t depth = value->depth + 1;
    if (current().kind == TokenKind::Name) return make(line, Attribute{std::move(value), next().text}, depth);
    if (current().kind != TokenKind::Integer) fail(current().line, "expected a name or number after '.'");
    return make(line, Item{std::move(value), number()}, depth);
}

ExprPtr Parser::optional_slice_part() {
    if (current().is_operator(":") || current().is_operator("]") || current().is_operator(",")) return nullptr;
    return expression();
}

/// Behind "[", up to "]" or ",".
ExprPtr Parser::slice_or_key(ExprPtr value) {
    const int line = current().line;
    ExprPtr start = current().is_operator(":") ? nullptr : expression();
    if (!skip_operator(":")) {
        const uint32_t depth = std::max(value->depth, start->depth) + 1;
        return make(line, Item{std::move(value), std::move(start)}, depth);
    }
    ExprPtr stop = optional_slice_part();
    ExprPtr step = skip_operator(":") ? optional_slice_part() : nullptr;
    const uint32_t depth = std::max({value->depth, depth_of(start), depth_of(stop), depth_of(step)}) + 1;
    return make(line, Slice{std::move(value), std::move(start), std::move(stop), std::move(step)}, depth);
}

/// Several keys, which jinja2 makes a tuple of, are of no use for any value that templates have.
ExprPtr Parser::subscript(ExprPtr value) {
    const int line = next().line;
    if (current().is_operator("]")) fail(line, "expected a key or a slice between [ and ]");
    ExprPtr result = slice_or_key(std::move(value));
    expect_operator("]");
    return result;
}

ExprPtr Parser::call(ExprPtr callee) {
    const int line = current().line;
    CallArguments arguments = call_arguments();
    const uint32_t depth = std::max(callee->depth, depth_of(arguments)) + 1;
    return make(line, Call{std::move(callee), std::move(arguments)}, depth);
}

CallArguments Parser::call_arguments() {
    const int line = next().line;
    CallArguments arguments;
    bool first = true;
    while (!current().is_operator(")")) {
        if (!first) {
            expect_operator(",");
            if (current().is_operator(")")) break;
        }
        call_argument(arguments, line);
        first = false;
    }
    ++at_;
    return arguments;
}

void Parser::call_argument(CallArguments& arguments, int line) {
    const auto ensure = [&](bool in_order) {
        if (!in_order) fail(line, "the arguments of the call are in the wrong order");
    };
    if (skip_operator("*")) {
        ensure(!arguments.list && !arguments.dict);
        arguments.list = expression();
    } else if (skip_operator("**")) {
        ensure(!arguments.dict);
        arguments.dict = expression();
    } else if (current().kind == TokenKind::Name && look().is_operator("=")) {
        ensure(!arguments.dict);
        const std::string name = next().text;
        ++at_;
        for (const auto& [other, value] : arguments.named)
            if (other == name) fail(line, "the keyword argument '{}' is given twice", name);
        arguments.named.emplace_back(name, expression());
    } else {
        ensure(!arguments.list && !arguments.dict && arguments.named.empty());
        arguments.positional.push_back(expression());
    }
}

std::string Parser::dotted_name() {
    std::string name = expect(TokenKind::Name, "a name").text;
    while (skip_operator(".")) name += "." + expect(TokenKind::Name, "a name").text;
    return name;
}

/// Unknown names are an error before anything is rendered, but not inside of an if: it may ask for them first.
void Parser::check_known(std::string_view what, const std::string& name, int line, bool known) {
    if (!known && conditions_ == 0) unknown_.push_back({line, fmt::format("there is no {} named '{}'", what, name)});
}

ExprPtr Parser::filter_chain(ExprPtr input) {
    while (skip_operator("|")) input = filter(std::move(input));
    return input;
}

ExprPtr Parser::filter(ExprPtr input) {
    const int line = current().line;
    FilterOf node;
    node.name = dotted_name();
    if (is_left_out_filter(node.name))
        unsupported(name_, line, "the filter '{}' is not supported in chat templates", node.name);
    check_known("filter", node.name, line, has_filter(node.name));
    if (current().is_operator("(")) node.arguments = call_arguments();
    const uint32_t depth = std::max(depth_of(input), depth_of(node.arguments)) + 1;
    node.input = std::move(input);
    return make(line, std::move(node), depth);
}

ExprPtr Parser::test(ExprPtr input) {
    const int line = next().line;
    const bool negated = skip_name("not");
    TestOf node;
    node.name = dotted_name();
    check_known("test", node.name, line, has_test(node.name));
    const Token& token = current();
    const bool value_follows = token.kind == TokenKind::Name || token.kind == TokenKind::String ||
                               token.kind == TokenKind::Integer || token.kind == TokenKind::Float ||
                               token.is_operator("[") || token.is_operator("{");
    if (token.is_operator("(")) {
        node.arguments = call_arguments();
    } else if (value_follows && !token.is_name("else") && !token.is_name("or") && !token.is_name("and")) {
        if (token.is_name("is")) fail(token.line, "tests cannot be chained with is");
        Nested nested(*this);
        node.arguments.positional.push_back(postfix(primary()));
    }
    const uint32_t depth = std::max(depth_of(input), depth_of(node.arguments)) + 1;
    node.input = std::move(input);
    ExprPtr result = make(line, std::move(node), depth);
    return negated ? make(line, Unary{UnaryOp::Not, std::move(result)}, depth + 1) : std::move(result);
}

}  // namespace llm::jinja
