#pragma once
// From a prompt to token ids.

#include <vector>

#include "src/chat/prompt.h"
#include "src/tokenizer/tokenizer.h"

namespace llm {

/// Ids of a prompt, or of what comes from byte `from` on. Added tokens count where the template or an earlier answer of
/// the model wrote them; in what users and tools wrote, and across its edges, they are plain text. Otherwise the ids
/// are those of the whole text. No BOS is added: templates write it.
std::vector<TokenId> encode(const Tokenizer& tokenizer, const Prompt& prompt, size_t from = 0);

}  // namespace llm
