#pragma once
// Metaspace: SentencePiece's way to keep spaces visible, "▁" for each, and one before the text. Used by the
// pre-tokenizer and by the decoder of that name.

#include <string>

namespace llm {

class Fields;

struct Metaspace {
    enum class Prepend { Always, First, Never };  ///< where a piece without one gets a mark in front
    std::string replacement;                      ///< one character, usually U+2581
    Prepend prepend = Prepend::Always;
    bool split = true;  ///< cut before every mark
};

/// Reads both the present fields and the older add_prefix_space. Throws corrupt_file if they contradict each other.
Metaspace parse_metaspace(const Fields& fields);

}  // namespace llm
