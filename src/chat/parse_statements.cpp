// Statements: what stands between {% and %}.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "src/chat/lexer.h"
#include "src/chat/parser.h"

namespace llm::jinja {

Ast parse(std::string_view source, const std::string& name) { return Parser(tokenize(source, name), name).run(); }

Parser::Nested::Nested(Parser& parser) : parser_(parser) {
    if (parser_.nesting_ >= kMaxNesting)
        parser_.fail(parser_.current().line, "nested too deeply (more than {} levels)", kMaxNesting);
    ++parser_.nesting_;
}

Ast Parser::run() {
    for (const char* name : {"loop", "caller", "varargs", "kwargs"}) intern(name);
    Body all = body({}, 1);
    if (!unknown_.empty()) fail(unknown_.front().line, "{}", unknown_.front().message);
    return {std::move(all), std::move(names_)};
}

Token Parser::next() {
    Token token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
}

bool Parser::skip_name(std::string_view text) {
    if (!current().is_name(text)) return false;
    ++at_;
    return true;
}

bool Parser::skip_operator(std::string_view text) {
    if (!current().is_operator(text)) return false;
    ++at_;
    return true;
}

void Parser::expect_operator(std::string_view text) {
    if (!skip_operator(text)) fail(current().line, "expected '{}', got {}", text, describe(current()));
}

void Parser::expect_name(std::string_view text) {
    if (!skip_name(text)) fail(current().line, "expected '{}', got {}", text, describe(current()));
}

Token Parser::expect(TokenKind kind, std::string_view what) {
    if (current().kind != kind) fail(current().line, "expected {}, got {}", what, describe(current()));
    return next();
}

NameId Parser::intern(const std::string& variable) {
    const auto [found, is_new] = ids_.try_emplace(variable, static_cast<NameId>(names_.size()));
    if (is_new) names_.push_back(variable);
    return found->second;
}

Body Parser::body(std::initializer_list<std::string_view> ends, int opened_at) {
    Nested nested(*this);
    Body result;
    while (current().kind != TokenKind::End) {
        if (current().kind == TokenKind::Data) {
            const int line = current().line;
            result.push_back({line, std::make_shared<const Text>(next().text)});
        } else if (current().kind == TokenKind::VariableBegin) {
            result.push_back(print());
        } else {
            expect(TokenKind::BlockBegin, "a tag");
            const bool ended = std::any_of(ends.begin(), ends.end(), [&](auto e) { return current().is_name(e); });
            if (ended) return result;
            result.push_back(statement());
            expect(TokenKind::BlockEnd, "the end of the tag");
        }
    }
    if (ends.size() > 0)
        fail(current().line, "the template ends, but the block of line {} still needs {}", opened_at,
             fmt::join(ends, " or "));
    return result;
}

Body Parser::body_and_end(std::string_view end, int opened_at) {
    expect(TokenKind::BlockEnd, "the end of the tag");
    Body result = body({end}, opened_at);
    ++at_;
    return result;
}

Statement Parser::print() {
    const int line = next().line;
    ExprPtr value = tuple();
    expect(TokenKind::VariableEnd, "the end of the print statement");
    return {line, Print{std::move(value)}};
}

void Parser::unknown_tag(const Token& tag) const {
    constexpr std::array kLeftOut = {"extends", "include", "import", "from", "block", "autoescape"};
    if (std::find(kLeftOut.begin(), kLeftOut.end(), tag.text) != kLeftOut.end())
        unsupported(name_, tag.line, "{{% {} %}} is not supported in chat templates", tag.text);
    fail(tag.line, "unknown tag '{}'", tag.text);
}

Statement Parser::statement() {
    const Token tag = expect(TokenKind::Name, "a tag's name");
    if (tag.text == "if") return if_statement(tag.line);
    if (tag.text == "for") return for_statement(tag.line);
    if (tag.text == "set") return set_statement(tag.line);
    if (tag.text == "macro") return macro_statement(tag.line);
    if (tag.text == "call") return call_statement(tag.line);
    if (tag.text == "filter") return filter_statement(tag.line);
    if (tag.text == "with") return with_statement(tag.line);
    if (tag.text == "break" || tag.text == "continue") return loop_control(tag.line, tag.text == "break");
    if (tag.text == "generation") {
        const uint32_t loops = std::exchange(loops_, 0);
        Statement result{tag.line, Generation{body_and_end("endgeneration", tag.line)}};
        loops_ = loops;
        return result;
    }
    unknown_tag(tag);
}

Statement Parser::if_statement(int line) {
    If node;
    ++conditions_;
    while (true) {
        ExprPtr condition = tuple(false);
        expect(TokenKind::BlockEnd, "the end of the tag");
        node.branches.emplace_back(std::move(condition), body({"elif", "else", "endif"}, line));
        const Token tag = next();
        if (tag.text == "elif") continue;
        if (tag.text == "else") node.otherwise = body_and_end("endif", line);
        break;
    }
    --conditions_;
    return {line, std::move(node)};
}

Statement Parser::for_statement(int line) {
    For node;
    node.target = target_tuple(false);
    expect_name("in");
    node.iterable = tuple(false);
    if (skip_name("if")) node.condition = expression();
    node.recursive = skip_name("recursive");
    expect(TokenKind::BlockEnd, "the end of the tag");
    ++loops_;
    node.body = body({"endfor", "else"}, line);
    --loops_;
    if (next().text == "else") node.otherwise = body_and_end("endfor", line);
    return {line, std::move(node)};
}

Statement Parser::set_statement(int line) {
    Target where = target_tuple(true);
    if (skip_operator("=")) return {line, Assign{std::move(where), tuple()}};
    ExprPtr filter = current().is_operator("|") ? filter_chain(nullptr) : nullptr;
    return {line, AssignBody{std::move(where), std::move(filter), body_and_end("endset", line)}};
}

Signature Parser::signature() {
    Signature result;
    expect_operator("(");
    while (!current().is_operator(")")) {
        if (!result.parameters.empty()) expect_operator(",");
        const Target parameter = target(false);
        if (parameter.is_tuple) fail(parameter.line, "a parameter is a name");
        result.parameters.push_back(parameter.name);
        result.parameter_names.push_back(names_[parameter.name]);
        if (skip_operator("="))
            result.defaults.push_back(expression());
        else if (!result.defaults.empty())
            fail(parameter.line, "parameter '{}' without a default follows one that has a default",
                 result.parameter_names.back());
    }
    ++at_;
    return result;
}

Body Parser::macro_body(Signature& signature, std::string_view end, int opened_at) {
    const uint32_t loops = std::exchange(loops_, 0);
    macros_.push_back(&signature);
    Body result = body_and_end(end, opened_at);
    macros_.pop_back();
    loops_ = loops;
    for (const std::string& parameter : signature.parameter_names) {
        if (parameter == "caller") signature.uses_caller = false;
        if (parameter == "varargs") signature.uses_varargs = false;
        if (parameter == "kwargs") signature.uses_kwargs = false;
    }
    return result;
}

Statement Parser::macro_statement(int line) {
    MacroDefinition macro;
    macro.name = expect(TokenKind::Name, "the macro's name").text;
    macro.id = intern(macro.name);
    macro.signature = signature();
    macro.body = macro_body(macro.signature, "endmacro", line);
    return {line, std::move(macro)};
}

Statement Parser::call_statement(int line) {
    CallBlock node;
    if (current().is_operator("(")) node.caller.signature = signature();
    node.call = expression();
    if (!std::holds_alternative<Call>(node.call->node)) fail(line, "expected a call");
    node.caller.body = macro_body(node.caller.signature, "endcall", line);
    return {line, std::move(node)};
}

Statement Parser::filter_statement(int line) {
    ExprPtr chain = filter_chain(filter(nullptr));
    return {line, FilterBlock{std::move(chain), body_and_end("endfilter", line)}};
}

Statement Parser::with_statement(int line) {
    With node;
    while (current().kind != TokenKind::BlockEnd) {
        if (!node.assignments.empty()) expect_operator(",");
        Target where = target_tuple(false);
        expect_operator("=");
        node.assignments.emplace_back(std::move(where), expression());
    }
    node.body = body_and_end("endwith", line);
    return {line, std::move(node)};
}

Statement Parser::loop_control(int line, bool is_break) {
    if (loops_ == 0) fail(line, "'{}' outside of a loop", is_break ? "break" : "continue");
    if (is_break) return {line, Break{}};
    return {line, Continue{}};
}

Target Parser::target(bool with_namespace) {
    Nested nested(*this);
    Target result;
    result.line = current().line;
    if (skip_operator("(")) {
        result = target_tuple(with_namespace);
        expect_operator(")");
        return result;
    }
    const Token variable = expect(TokenKind::Name, "a name to assign to");
    constexpr std::array kConstants = {"true", "false", "none", "True", "False", "None"};
    if (std::find(kConstants.begin(), kConstants.end(), variable.text) != kConstants.end())
        fail(variable.line, "cannot assign to '{}'", variable.text);
    result.name = intern(variable.text);
    if (with_namespace && skip_operator(".")) result.attribute = expect(TokenKind::Name, "an attribute's name").text;
    return result;
}

Target Parser::target_tuple(bool with_namespace) {
    Target result;
    result.line = current().line;
    while (true) {
        result.targets.push_back(target(with_namespace));
        if (!current().is_operator(",")) break;
        result.is_tuple = true;
        ++at_;
        if (at_tuple_end() || current().is_name("in") || current().is_operator("=")) break;
    }
    if (!result.is_tuple) {
        Target only = std::move(result.targets.front());
        return only;
    }
    return result;
}

}  // namespace llm::jinja
