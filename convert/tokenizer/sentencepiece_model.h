#pragma once
// SentencePiece's own files (tokenizer.model, spiece.model): a protocol buffer with the pieces and with what the
// trainer and the normalizer were told. Source: sentencepiece_model.proto of https://github.com/google/sentencepiece

#include <string_view>

#include "convert/tokenizer/sentencepiece_json.h"

namespace convert {

/// Throws corrupt_file for what is no such file, unsupported, naming it, for models other than BPE and Unigram, for
/// spaces put after words, for spaces not written as "▁", and for rules that change the text when decoding.
SentencePieces read_sentencepiece_model(std::string_view bytes);

}  // namespace convert
