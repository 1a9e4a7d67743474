#pragma once
// What the lexer makes of a template's source.

#include <string>
#include <string_view>
#include <vector>

namespace llm::jinja {

enum class TokenKind {
    Data,           ///< text outside of tags
    VariableBegin,  ///< {{
    VariableEnd,
    BlockBegin,  ///< {%
    BlockEnd,
    Name,
    String,   ///< text: what the literal stands for
    Integer,  ///< text: as written, without underscores
    Float,
    Operator,  ///< text: as written
    End,
};

struct Token {
    TokenKind kind = TokenKind::End;
    std::string text;
    int line = 1;

    bool is(TokenKind k, std::string_view t) const { return kind == k && text == t; }
    bool is_name(std::string_view t) const { return is(TokenKind::Name, t); }
    bool is_operator(std::string_view t) const { return is(TokenKind::Operator, t); }
};

/// "end of print statement", "'endfor'": a token as messages name it.
std::string describe(const Token& token);

}  // namespace llm::jinja
