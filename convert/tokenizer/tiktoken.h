#pragma once
// tiktoken's files: a token in base64 and its rank on every line, and no word of how text is cut before, or of special
// tokens. Those rules come from a second source, or the file is refused.

#include <optional>
#include <string>
#include <string_view>

#include "convert/tokenizer/ranked_tokens.h"

namespace convert {

/// True if the first line looks like one of such a file.
bool is_tiktoken(std::string_view text);

/// The tokens. Throws corrupt_file, naming the line.
RankedTokens read_tiktoken(std::string_view text);

/// OpenAI's encodings by the names of their files: sets pattern and special tokens; false for another name.
bool apply_known_encoding(std::string_view file_name, RankedTokens& model);

/// The regular expression that a checkpoint's own Python module names: `pat_str = r"""…"""`, or
/// `pat_str = "|".join([r"""…""", …])`. Nothing if the module has no such line, or writes it in another way.
std::optional<std::string> pattern_of_module(std::string_view python);

}  // namespace convert
