#pragma once
// Byte-level BPE as tiktoken writes it, without merges: tokens are strings of bytes, and of two neighbours those are
// joined whose joined token has the lowest rank. As a tokenizer.json, which needs the list of merges.

#include <cstdint>
#include <string>
#include <vector>

#include "convert/tokenizer/added_tokens.h"

namespace convert {

struct RankedTokens {
    struct Token {
        std::string bytes;
        int64_t rank = 0;
    };
    std::vector<Token> tokens;
    int64_t first_id = 0;  ///< id of rank 0
    std::string pattern;   ///< the regular expression whose matches are encoded one by one
    std::vector<AddedTokenSpec> added;
    std::string bos;  ///< content of the added token before every text; empty: none
};

/// The text of a tokenizer.json. A token is joined from the two parts that joining its own bytes by lower ranks leaves;
/// no other pair can ever come together. A piece that is a token is that token (ignore_merges), as in tiktoken. Throws
/// corrupt_file for tokens or ranks that come twice, for empty tokens and bytes without a token, unsupported for a
/// token of more than 512 bytes.
std::string tokenizer_json(RankedTokens model);

}  // namespace convert
