#pragma once
// Pre-tokenizers: cut a text into the pieces that the model then encodes one by one. Sequence, Split, ByteLevel,
// Digits, Metaspace, Punctuation, Whitespace, WhitespaceSplit, CharDelimiterSplit.

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/tokenizer/pattern.h"

namespace llm {

/// A text and its pieces, in order; pieces are never empty.
struct Pieces {
    std::string text;
    std::vector<Range> pieces;
    bool at_start = true;  ///< the first piece begins where the whole input does

    std::string_view piece(const Range& r) const { return std::string_view(text).substr(r.begin, r.size()); }
    std::string_view piece(size_t i) const { return piece(pieces[i]); }
};

/// Rewrites every piece: append(piece, first, out) appends what it becomes; first: it begins where the whole input
/// does.
void rewrite(Pieces& pieces, const std::function<void(std::string_view piece, bool first, std::string& out)>& append);

/// Cuts the pieces further; may rewrite the text. May be called from any thread. Empty: there is no pre-tokenizer.
using PreTokenizer = std::function<void(Pieces&)>;

/// From tokenizer.json's "pre_tokenizer" (null: an empty function). Throws unsupported for a type that is not listed
/// above.
PreTokenizer parse_pre_tokenizer(const nlohmann::json& json);

}  // namespace llm
