// Expressions, loosest binding first: conditional, or, and, not, comparison, + -, ~, * / // %, **, unary, postfix,
// filters and tests.

#include <algorithm>
#include <charconv>

#include "src/chat/parser.h"

namespace llm::jinja {

ExprPtr Parser::make(int line, decltype(Expr::node) node, uint32_t depth) const {
    if (depth > kMaxExprDepth) fail(line, "the expression is too long or nested too deeply");
    return std::make_unique<const Expr>(Expr{line, depth, std::move(node)});
}

bool Parser::at_tuple_end() const {
    return current().kind == TokenKind::VariableEnd || current().kind == TokenKind::BlockEnd ||
           current().is_operator(")");
}

ExprPtr Parser::tuple(bool with_condition, bool parenthesized) {
    const int line = current().line;
    std::vector<ExprPtr> items;
    uint32_t depth = 0;
    bool is_tuple = false;
    while (!at_tuple_end() && !(is_tuple && current().is_name("recursive"))) {
        items.push_back(with_condition ? expression() : disjunction());
        depth = std::max(depth, items.back()->depth);
        if (!skip_operator(",")) break;
        is_tuple = true;
    }
    if (!is_tuple && !items.empty()) return std::move(items.front());
    if (items.empty() && !parenthesized) fail(line, "expected an expression, got {}", describe(current()));
    return make(line, TupleOf{std::move(items)}, depth + 1);
}

ExprPtr Parser::expression() {
    Nested nested(*this);
    return conditional();
}

ExprPtr Parser::conditional() {
    const int line = current().line;
    const size_t unknown_before = unknown_.size();
    ExprPtr then = disjunction();
    while (skip_name("if")) {
        unknown_.resize(unknown_before);
        ExprPtr condition = disjunction();
        ExprPtr otherwise;
        if (skip_name("else")) otherwise = expression();
        const uint32_t depth =
            std::max({then->depth, condition->depth, otherwise ? otherwise->depth : uint32_t{0}}) + 1;
        then = make(line, Conditional{std::move(condition), std::move(then), std::move(otherwise)}, depth);
    }
    return then;
}

ExprPtr Parser::disjunction() {
    const int line = current().line;
    ExprPtr left = conjunction();
    while (skip_name("or")) {
        ExprPtr right = conjunction();
        const uint32_t depth = std::max(left->depth, right->depth) + 1;
        left = make(line, AndOr{false, std::move(left), std::move(right)}, depth);
    }
    return left;
}

ExprPtr Parser::conjunction() {
    const int line = current().line;
    ExprPtr left = negation();
    while (skip_name("and")) {
        ExprPtr right = negation();
        const uint32_t depth = std::max(left->depth, right->depth) + 1;
        left = make(line, AndOr{true, std::move(left), std::move(right)}, depth);
    }
    return left;
}

ExprPtr Parser::negation() {
    const int line = current().line;
    if (!skip_name("not")) return comparison();
    Nested nested(*this);
    ExprPtr operand = negation();
    const uint32_t depth = operand->depth + 1;
    return make(line, Unary{UnaryOp::Not, std::move(operand)}, depth);
}

bool Parser::compare_op(CompareOp& op) {
    constexpr std::pair<std::string_view, CompareOp> kOps[] = {
        {"==", CompareOp::Equal},     {"!=", CompareOp::NotEqual}, {"<", CompareOp::Less},
        {"<=", CompareOp::LessEqual}, {">", CompareOp::Greater},   {">=", CompareOp::GreaterEqual}};
    for (const auto& [text, meaning] : kOps) {
        if (!skip_operator(text)) continue;
        op = meaning;
        return true;
    }
    const bool is_not = current().is_name("not") && look().is_name("in");
    if (is_not) ++at_;
    op = is_not ? CompareOp::NotIn : CompareOp::In;
    return skip_name("in");
}

ExprPtr Parser::comparison() {
    const int line = current().line;
    Comparison node;
    node.first = sum();
    uint32_t depth = node.first->depth;
    for (CompareOp op{}; compare_op(op);) {
        node.rest.emplace_back(op, sum());
        depth = std::max(depth, node.rest.back().second->depth);
    }
    if (node.rest.empty()) return std::move(node.first);
    return make(line, std::move(node), depth + 1);
}

ExprPtr Parser::sum() {
    ExprPtr left = concatenation();
    while (true) {
        const int line = current().line;
        const bool add = skip_operator("+");
        if (!add && !skip_operator("-")) return left;
        ExprPtr right = concatenation();
        const uint32_t depth = std::max(left->depth, right->depth) + 1;
        left = make(line, Binary{add ? BinaryOp::Add : BinaryOp::Subtract, std::move(left), std::move(right)}, depth);
    }
}

ExprPtr Parser::concatenation() {
    const int line = current().line;
    std::vector<ExprPtr> parts;
    uint32_t depth = 0;
    do {
        parts.push_back(product());
        depth = std::max(depth, parts.back()->depth);
    } while (skip_operator("~"));
    if (parts.size() == 1) return std::move(parts.front());
    return make(line, Concatenation{std::move(parts)}, depth + 1);
}

ExprPtr Parser::product() {
    constexpr std::pair<std::string_view, BinaryOp> kOps[] = {
        {"*", BinaryOp::Multiply}, {"/", BinaryOp::Divide}, {"//", BinaryOp::FloorDivide}, {"%", BinaryOp::Modulo}};
    ExprPtr left = power();
    while (true) {
        const auto found = std::find_if(std::begin(kOps), std::end(kOps),
                                        [&](const auto& op) { return current().is_operator(op.first); });
        if (found == std::end(kOps)) return left;
        const int line = next().line;
        ExprPtr right = power();
        const uint32_t depth = std::max(left->depth, right->depth) + 1;
        left = make(line, Binary{found->second, std::move(left), std::move(right)}, depth);
    }
}

/// From left to right, unlike Python.
ExprPtr Parser::power() {
    ExprPtr left = unary(true);
    while (current().is_operator("**")) {
        const int line = next().line;
        ExprPtr right = unary(true);
        const uint32_t depth = std::max(left->depth, right->depth) + 1;
        left = make(line, Binary{BinaryOp::Power, std::move(left), std::move(right)}, depth);
    }
    return left;
}

ExprPtr Parser::unary(bool with_filters) {
    const int line = current().line;
    ExprPtr value;
    if (current().is_operator("-") || current().is_operator("+")) {
        Nested nested(*this);
        const UnaryOp op = next().text == "-" ? UnaryOp::Minus : UnaryOp::Plus;
        ExprPtr operand = unary(false);
        const uint32_t depth = operand->depth + 1;
        value = make(line, Unary{op, std::move(operand)}, depth);
    } else {
        value = primary();
    }
    value = postfix(std::move(value));
    return with_filters ? filters_and_tests(std::move(value)) : std::move(value);
}

ExprPtr Parser::primary() {
    const Token& token = current();
    switch (token.kind) {
        case TokenKind::Name:
            return name_or_constant();
        case TokenKind::String:
            return string();
        case TokenKind::Integer:
        case TokenKind::Float:
            return number();
        default:
            break;
    }
    if (token.is_operator("[")) return list();
    if (token.is_operator("{")) return dict();
    if (!skip_operator("(")) fail(token.line, "unexpected {}", describe(token));
    ExprPtr value = tuple(true, true);
    expect_operator(")");
    return value;
}

ExprPtr Parser::name_or_constant() {
    const Token token = next();
    const auto constant = [&](Value value) { return make(token.line, Constant{std::move(value)}, 1); };
    if (token.text == "true" || token.text == "True") return constant(true);
    if (token.text == "false" || token.text == "False") return constant(false);
    if (token.text == "none" || token.text == "None") return constant(None{});
    for (Signature* macro : macros_) {
        if (token.text == "caller") macro->uses_caller = true;
        if (token.text == "varargs") macro->uses_varargs = true;
        if (token.text == "kwargs") macro->uses_kwargs = true;
    }
    return make(token.line, Variable{intern(token.text)}, 1);
}

ExprPtr Parser::number() {
    const Token token = next();
    const char* begin = token.text.data();
    const char* end = begin + token.text.size();
    if (token.kind == TokenKind::Float) {
        double value = 0;
        if (std::from_chars(begin, end, value).ec != std::errc())
            fail(token.line, "the number {} is too large", token.text);
        return make(token.line, Constant{value}, 1);
    }
    const char kind = token.text.size() > 2 ? static_cast<char>(token.text[1] | 0x20) : '\0';
    const int base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
    int64_t value = 0;
    if (std::from_chars(begin + (base == 10 ? 0 : 2), end, value, base).ec != std::errc())
        fail(token.line, "the number {} is too large (64 bits at most)", token.text);
    return make(token.line, Constant{value}, 1);
}

ExprPtr Parser::string() {
    const int line = current().line;
    std::string text;
    while (current().kind == TokenKind::String) text += next().text;
    return make(line, Constant{std::make_shared<const Text>(std::move(text))}, 1);
}

ExprPtr Parser::list() {
    const int line = next().line;
    std::vector<ExprPtr> items;
    uint32_t depth = 0;
    while (!current().is_operator("]")) {
        if (!items.empty()) expect_operator(",");
        if (current().is_operator("]")) break;
        items.push_back(expression());
        depth = std::max(depth, items.back()->depth);
    }
    ++at_;
    return make(line, ListOf{std::move(items)}, depth + 1);
}

ExprPtr Parser::dict() {
    const int line = next().line;
    DictOf node;
    uint32_t depth = 0;
    while (!current().is_operator("}")) {
        if (!node.items.empty()) expect_operator(",");
        if (current().is_operator("}")) break;
        ExprPtr key = expression();
        expect_operator(":");
        ExprPtr value = expression();
        depth = std::max({depth, key->depth, value->depth});
        node.items.emplace_back(std::move(key), std::move(value));
    }
    ++at_;
    return make(line, std::move(node), depth + 1);
}

}  // namespace llm::jinja
