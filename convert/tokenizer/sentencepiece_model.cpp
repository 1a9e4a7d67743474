#include "convert/tokenizer/sentencepiece_model.h"

#include "convert/tokenizer/protobuf.h"
#include "ggmlx/core/error.h"

namespace convert {
namespace {

using ggmlx::ErrorKind;
using ggmlx::fail;
using ggmlx::require;
using Type = SentencePieces::Type;

// Numbers of fields in sentencepiece_model.proto.
namespace model_field {
constexpr uint32_t kPiece = 1, kTrainer = 2, kNormalizer = 3, kDenormalizer = 5;
}
namespace piece_field {
constexpr uint32_t kText = 1, kScore = 2, kType = 3;
}
namespace trainer_field {
constexpr uint32_t kModelType = 3, kSpaceAsSuffix = 24, kByteFallback = 35, kBosId = 41, kEosId = 42;
}
namespace normalizer_field {
constexpr uint32_t kCharsmap = 2, kDummyPrefix = 3, kRemoveExtra = 4, kEscape = 5;
}

SentencePieces::Piece read_piece(std::string_view message) {
    SentencePieces::Piece piece;
    ProtoReader reader(message);
    for (ProtoField f; reader.next(f);) {
        if (f.number == piece_field::kText) piece.text = f.as_bytes();
        if (f.number == piece_field::kScore) piece.score = f.as_float();
        if (f.number != piece_field::kType) continue;
        require(f.as_varint() >= 1 && f.value <= 6, ErrorKind::Unsupported,
                "SentencePiece model: piece '{}' has type {}", piece.text, f.value);
        piece.type = static_cast<Type>(f.value);
    }
    return piece;
}

SentencePieces::Kind model_kind(uint64_t number) {
    if (number == 1) return SentencePieces::Kind::Unigram;
    if (number == 2) return SentencePieces::Kind::Bpe;
    fail(ErrorKind::Unsupported, "SentencePiece model: model type {} is not supported",
         number == 3   ? "WORD"
         : number == 4 ? "CHAR"
                       : std::to_string(number));
}

void read_trainer(std::string_view message, SentencePieces& model) {
    ProtoReader reader(message);
    for (ProtoField f; reader.next(f);) {
        if (f.number == trainer_field::kModelType) model.kind = model_kind(f.as_varint());
        if (f.number == trainer_field::kByteFallback) model.byte_fallback = f.as_bool();
        if (f.number == trainer_field::kBosId) model.bos_id = f.as_int32();
        if (f.number == trainer_field::kEosId) model.eos_id = f.as_int32();
        require(f.number != trainer_field::kSpaceAsSuffix || !f.as_bool(), ErrorKind::Unsupported,
                "SentencePiece model: treat_whitespace_as_suffix is not supported");
    }
}

void read_normalizer(std::string_view message, SentencePieces& model) {
    ProtoReader reader(message);
    for (ProtoField f; reader.next(f);) {
        if (f.number == normalizer_field::kCharsmap) model.precompiled_charsmap = f.as_bytes();
        if (f.number == normalizer_field::kDummyPrefix) model.add_dummy_prefix = f.as_bool();
        if (f.number == normalizer_field::kRemoveExtra) model.remove_extra_whitespaces = f.as_bool();
        require(f.number != normalizer_field::kEscape || f.as_bool(), ErrorKind::Unsupported,
                "SentencePiece model: escape_whitespaces = false is not supported");
    }
}

void check_denormalizer(std::string_view message) {
    ProtoReader reader(message);
    for (ProtoField f; reader.next(f);)
        require(f.number != normalizer_field::kCharsmap || f.as_bytes().empty(), ErrorKind::Unsupported,
                "SentencePiece model: denormalizer_spec is not supported");
}

/// The id if it is one of a control piece.
int64_t control_or_none(const SentencePieces& model, int64_t id) {
    const bool is_control = id >= 0 && id < static_cast<int64_t>(model.pieces.size()) &&
                            model.pieces[static_cast<size_t>(id)].type == Type::Control;
    return is_control ? id : -1;
}

}  // namespace

SentencePieces read_sentencepiece_model(std::string_view bytes) {
    SentencePieces model;
    // What the format means where a field is missing.
    model.kind = SentencePieces::Kind::Unigram;
    model.bos_id = 1;
    model.eos_id = 2;
    model.remove_extra_whitespaces = true;
    ProtoReader reader(bytes);
    for (ProtoField f; reader.next(f);) {
        if (f.number == model_field::kPiece) model.pieces.push_back(read_piece(f.as_bytes()));
        if (f.number == model_field::kTrainer) read_trainer(f.as_bytes(), model);
        if (f.number == model_field::kNormalizer) read_normalizer(f.as_bytes(), model);
        if (f.number == model_field::kDenormalizer) check_denormalizer(f.as_bytes());
    }
    require(!model.pieces.empty(), ErrorKind::CorruptFile, "SentencePiece model: there are no pieces");
    model.bos_id = control_or_none(model, model.bos_id);
    model.eos_id = control_or_none(model, model.eos_id);
    for (size_t id = 0; id < model.pieces.size(); ++id) {
        if (model.pieces[id].type != Type::Unknown) continue;
        require(model.unk_id < 0, ErrorKind::CorruptFile, "SentencePiece model: pieces {} and {} are both unknown",
                model.unk_id, id);
        model.unk_id = static_cast<int64_t>(id);
    }
    require(model.unk_id >= 0, ErrorKind::CorruptFile, "SentencePiece model: there is no unknown piece");
    return model;
}

}  // namespace convert
