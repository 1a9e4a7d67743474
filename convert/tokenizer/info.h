#pragma once
// What the converter needs to know of a tokenizer.json: how many ids it gives out. The rules themselves are the
// runtime's business.

#include <cstdint>
#include <string>
#include <string_view>

namespace convert {

struct TokenizerInfo {
    std::string model_type;  ///< "BPE", "Unigram" …; empty if the file does not say
    int64_t n_tokens = 0;    ///< different ids, added tokens included
    int64_t max_id = -1;     ///< ids may have gaps: added tokens keep theirs
};

/// Throws corrupt_file for malformed JSON, for a missing vocabulary and for ids that are no int32, naming the token.
TokenizerInfo tokenizer_info(std::string_view tokenizer_json);

}  // namespace convert
