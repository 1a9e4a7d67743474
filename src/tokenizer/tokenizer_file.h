#pragma once
// Reads tokenizer.json. Such a file has 8 to 30 MB, nearly all of it vocabulary and merges: those two are taken from
// the parser's events into flat arrays; everything else becomes a small JSON tree.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "src/tokenizer/vocab.h"

namespace llm {

struct TokenizerFile {
    /// A piece of merge_arena, or of vocab_arena in Scored.
    struct Span {
        size_t offset = 0, size = 0;
    };
    struct Scored {
        Span text;
        double score = 0;
    };
    struct Merge {
        Span left, right;
    };

    nlohmann::json tree;              ///< the whole file without model.vocab and model.merges
    std::string vocab_arena;          ///< spellings of the vocabulary
    std::string merge_arena;          ///< and of the merges
    std::vector<Vocab::Entry> vocab;  ///< model.vocab, where it is an object of ids
    std::vector<Merge> merges;        ///< model.merges, written as "a b" or as ["a", "b"]
    std::vector<Scored> scored;       ///< model.vocab, where it is a list of [token, score]
    bool has_scores = false;          ///< it is such a list

    std::string_view text(Span s) const { return std::string_view(merge_arena).substr(s.offset, s.size); }

    /// Throws corrupt_file with the parser's position and reason.
    static TokenizerFile parse(std::string_view text);
};

}  // namespace llm
