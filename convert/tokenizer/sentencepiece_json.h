#pragma once
// A SentencePiece vocabulary as a tokenizer.json, which is the only form that the runtime reads. Shared by the
// importers of `tokenizer.model` files and of GGUF files.
//
// The result says what transformers' conversion of slow tokenizers says (its converters for Llama and, for Unigram
// without byte fallback, its general one for SentencePiece), with two differences: merges never lead to a control, an
// unknown or a byte piece, so that plain text cannot become a control token; and white space is cut only where the
// model itself asks for it (remove_extra_whitespaces).

#include <cstdint>
#include <string>
#include <vector>

#include "convert/tokenizer/added_tokens.h"

namespace convert {

struct SentencePieces {
    enum class Kind { Bpe, Unigram };
    /// With the numbers of SentencePiece's ModelProto and of GGUF's tokenizer.ggml.token_type.
    enum class Type : uint8_t { Normal = 1, Unknown = 2, Control = 3, UserDefined = 4, Unused = 5, Byte = 6 };
    struct Piece {
        std::string text;  ///< UTF-8; "▁" stands for a space
        float score = 0;   ///< the larger, the earlier (BPE) or the likelier (Unigram: a logarithm)
        Type type = Type::Normal;
    };

    Kind kind = Kind::Bpe;
    std::vector<Piece> pieces;  ///< a piece's id is its place
    int64_t unk_id = -1;        ///< -1 in these: there is none
    int64_t bos_id = -1, eos_id = -1;
    bool add_bos = true, add_eos = false;   ///< which of them encoding puts around a text; counts only with an id
    bool byte_fallback = false;             ///< characters without a piece become byte pieces "<0xE4>"
    bool add_dummy_prefix = true;           ///< a space before the text
    bool remove_extra_whitespaces = false;  ///< none at the ends, one between words
    bool legacy = true;                     ///< the dummy prefix also follows every special token
    std::string precompiled_charsmap;       ///< SentencePiece's normalization table; empty: none
    std::vector<AddedTokenSpec> added;      ///< further tokens, or other flags for pieces
};

/// The text of a tokenizer.json. BPE's merges are derived from the scores: every way to cut a piece into two pieces, in
/// the order of the joined piece's score. Takes time linear in the text of all pieces. Throws corrupt_file for an empty
/// or doubled piece, one that is not UTF-8, a score that is no finite number, ids out of range and scores that make for
/// more than 256 MiB of merges; unsupported for a piece of more than 1024 bytes that BPE would have to join.
std::string tokenizer_json(const SentencePieces& model);

}  // namespace convert
