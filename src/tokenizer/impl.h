#pragma once
// The stages of a tokenizer, in the order in which a text passes them.

#include <algorithm>
#include <memory>
#include <vector>

#include "src/tokenizer/added_tokens.h"
#include "src/tokenizer/decoder.h"
#include "src/tokenizer/model.h"
#include "src/tokenizer/normalizer.h"
#include "src/tokenizer/postprocessor.h"
#include "src/tokenizer/pretokenizer.h"
#include "src/tokenizer/tokenizer.h"

namespace llm {

struct Tokenizer::Impl {
    AddedTokens added;
    Normalizer normalizer;
    PreTokenizer pre_tokenizer;
    std::unique_ptr<const TokenizerModel> model;
    SpecialFrame frame;
    DecodeChain decoder;
    /// Ids of the model whose spelling is a special token with another id; they are special, too.
    std::vector<TokenId> special_twins;

    /// Spelling of an id; empty if it has none.
    std::string_view token(TokenId id) const {
        const AddedToken* t = added.by_id(id);
        return t ? std::string_view(t->content) : model->vocab().token(id);
    }
    /// What an id gives to the decoder.
    std::string_view decoder_input(TokenId id) const {
        const AddedToken* t = added.by_id(id);
        return t ? std::string_view(t->decoded) : model->vocab().token(id);
    }
    bool has(TokenId id) const { return added.by_id(id) || model->vocab().has(id); }
    bool is_special(TokenId id) const {
        const AddedToken* t = added.by_id(id);
        return t ? t->special : std::find(special_twins.begin(), special_twins.end(), id) != special_twins.end();
    }
    std::optional<TokenId> find(std::string_view token) const {
        const auto id = added.by_content(token);
        return id ? id : model->vocab().find(token);
    }
};

}  // namespace llm
