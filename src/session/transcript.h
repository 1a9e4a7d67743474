#pragma once
// Conversations on disk: messages, with what proves that they belong to a model's tokenizer. The cache itself is not
// stored; it is computed again, so a file cannot bring wrong state into a session.

#include <string>
#include <vector>

#include "src/model.h"
#include "src/session/conversation.h"

namespace llm {

/// JSON: {"ggmlx_session": 1, "tokenizer": "<xxh3 of tokenizer.json>", "messages": [{role, content, reasoning_content?,
/// ids?}], "checksum": "<xxh3 of the messages, dumped without spaces>"}.
std::string save_transcript(const Model& model, const std::vector<ChatMessage>& messages);

/// Throws corrupt_file for anything that is not such a file, is damaged, or has ids outside the vocabulary, and
/// invalid_argument if it belongs to another tokenizer.
std::vector<ChatMessage> load_transcript(const Model& model, const std::string& text);

}  // namespace llm
