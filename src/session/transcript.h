#pragma once
// Conversations on disk: the token ids of a session, with what proves that they belong to a model's tokenizer. The
// cache itself is not stored; it is computed again from the ids, so a file cannot bring wrong state into a session.

#include <string>
#include <vector>

#include "src/model.h"

namespace llm {

/// JSON: {"ggmlx_session": 1, "tokenizer": "<xxh3 of tokenizer.json>", "ids": […], "checksum": "<xxh3 of the ids>"}.
std::string save_transcript(const Model& model, const std::vector<TokenId>& ids);

/// Throws corrupt_file for anything that is not such a file, is damaged, or has ids outside the vocabulary, and
/// invalid_argument if it belongs to another tokenizer.
std::vector<TokenId> load_transcript(const Model& model, const std::string& text);

}  // namespace llm
