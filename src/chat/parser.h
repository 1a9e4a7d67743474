#pragma once
// From tokens to the tree. The grammar is jinja2's, by recursive descent: every function reads what it is named after.

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/chat/ast.h"
#include "src/chat/syntax_error.h"
#include "src/chat/token.h"

namespace llm::jinja {

/// Throws corrupt_file for what is no template and unsupported for statements that are left out.
Ast parse(std::string_view source, const std::string& name);

class Parser {
  public:
    Parser(std::vector<Token> tokens, const std::string& name) : name_(name), tokens_(std::move(tokens)) {}
    Ast run();

  private:
    const std::string& name_;
    std::vector<Token> tokens_;
    size_t at_ = 0;
    uint32_t nesting_ = 0;
    uint32_t conditions_ = 0;  // ifs around us: what is in them may never run
    struct Problem {
        int line = 0;
        std::string message;
    };
    std::vector<Problem> unknown_;  // filters and tests that there are not
    uint32_t loops_ = 0;            // loops around us within the same macro
    std::vector<Signature*> macros_;
    std::vector<std::string> names_;
    std::unordered_map<std::string, NameId> ids_;

    /// Counts nesting while it lives.
    class Nested {
      public:
        explicit Nested(Parser& parser);
        ~Nested() { --parser_.nesting_; }
        Nested(const Nested&) = delete;
        Nested& operator=(const Nested&) = delete;

      private:
        Parser& parser_;
    };

    const Token& current() const { return tokens_[at_]; }
    const Token& look() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
    Token next();
    bool skip_name(std::string_view text);
    bool skip_operator(std::string_view text);
    void expect_operator(std::string_view text);
    void expect_name(std::string_view text);
    Token expect(TokenKind kind, std::string_view what);
    template <class... Args>
    [[noreturn]] void fail(int line, fmt::format_string<Args...> format, Args&&... args) const {
        syntax_error(name_, line, format, std::forward<Args>(args)...);
    }
    NameId intern(const std::string& variable);

    // parse_statements.cpp
    /// Up to a tag with one of these names, which becomes the current token; an empty list: to the end.
    Body body(std::initializer_list<std::string_view> ends, int opened_at);
    /// The same, and past the name of that tag.
    Body body_and_end(std::string_view end, int opened_at);
    Statement print();
    Statement statement();
    Statement if_statement(int line);
    Statement for_statement(int line);
    Statement set_statement(int line);
    Statement macro_statement(int line);
    Statement call_statement(int line);
    Statement filter_statement(int line);
    Statement with_statement(int line);
    Statement loop_control(int line, bool is_break);
    Signature signature();
    /// The body of a macro or call block, which sets what its signature uses.
    Body macro_body(Signature& signature, std::string_view end, int opened_at);
    Target target(bool with_namespace);
    Target target_tuple(bool with_namespace);
    [[noreturn]] void unknown_tag(const Token& tag) const;

    // parse_expressions.cpp
    /// A node of a tree that is `depth` deep.
    ExprPtr make(int line, decltype(Expr::node) node, uint32_t depth) const;
    /// `a, b`: a tuple if there is a comma. parenthesized: it may be empty.
    ExprPtr tuple(bool with_condition = true, bool parenthesized = false);
    bool at_tuple_end() const;
    ExprPtr expression();
    ExprPtr conditional();
    ExprPtr disjunction();
    ExprPtr conjunction();
    ExprPtr negation();
    ExprPtr comparison();
    bool compare_op(CompareOp& op);
    ExprPtr sum();
    ExprPtr concatenation();
    ExprPtr product();
    ExprPtr power();
    ExprPtr unary(bool with_filters);
    ExprPtr primary();
    ExprPtr name_or_constant();
    ExprPtr number();
    ExprPtr string();
    ExprPtr list();
    ExprPtr dict();

    // parse_postfix.cpp
    ExprPtr postfix(ExprPtr value);
    ExprPtr filters_and_tests(ExprPtr value);
    ExprPtr subscript(ExprPtr value);
    ExprPtr attribute(ExprPtr value);
    ExprPtr slice_or_key(ExprPtr value);
    ExprPtr optional_slice_part();
    ExprPtr call(ExprPtr callee);
    CallArguments call_arguments();
    void call_argument(CallArguments& arguments, int line);
    /// `name(arguments)` behind a "|" or alone in a filter block, and those chained to it.
    ExprPtr filter_chain(ExprPtr input);
    ExprPtr filter(ExprPtr input);
    ExprPtr test(ExprPtr input);
    std::string dotted_name();
    void check_known(std::string_view what, const std::string& name, int line, bool known);
};

}  // namespace llm::jinja
