#pragma once
// Cutting pieces at matches: the five behaviours that tokenizer.json knows.

#include <functional>
#include <string_view>
#include <vector>

#include "src/tokenizer/pretokenizer.h"

namespace llm {

/// What becomes of a match: on "a-b" with the match "-": a|b, a|-|b, a-|b, a|-b. Contiguous is Isolated, but
/// neighbouring matches become one piece.
enum class SplitBehavior { Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };

/// By its name in tokenizer.json; throws unsupported for another one.
SplitBehavior parse_split_behavior(std::string_view name);

/// Appends the matches in a text, from left to right.
using FindMatches = std::function<void(std::string_view text, std::vector<Range>& out)>;

/// Every character that has the property is a match.
FindMatches characters(bool (*property)(char32_t));

/// Cuts every piece. invert: what lies between the matches counts as match, and the other way round.
void split(Pieces& pieces, const FindMatches& find, SplitBehavior behavior, bool invert = false);

}  // namespace llm
