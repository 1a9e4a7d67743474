#pragma once
// Regular expressions in tokenizer.json are written for Oniguruma (Ruby's syntax). This rewrites one for PCRE2 so that
// it finds the same pieces, and refuses what it cannot rewrite exactly.

#include <string>
#include <string_view>

namespace llm {

/// The same expression for PCRE2 with the options UTF, UCP and MULTILINE. What differs between the two: \s (PCRE2's has
/// U+180E), scripts (PCRE2's \p{Han} means Script_Extensions), class unions and [X&&[^Y]], \h (a hexadecimal digit),
/// \v, (?m) (dot matches newline), {n,m}+ (not possessive).
/// Throws unsupported, naming the construct, for what has no exact counterpart (\w, \b, POSIX brackets, subexpression
/// calls …), and corrupt_file for brackets that do not close.
/// Source: Oniguruma's doc/RE; pcre2pattern(3).
std::string oniguruma_to_pcre2(std::string_view pattern);

}  // namespace llm
