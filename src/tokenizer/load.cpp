// Tokenizer::from_json: reads tokenizer.json and tokenizer_config.json into the stages.

#include "ggmlx/core/error.h"
#include "src/tokenizer/fields.h"
#include "src/tokenizer/impl.h"

namespace llm {
namespace {

using ggmlx::ErrorKind;
using ggmlx::fail;
using ggmlx::require;
using nlohmann::json;

json parse_config(std::string_view text) {
    json config = json::parse(text, nullptr, false);
    require(config.is_object(), ErrorKind::CorruptFile, "tokenizer_config.json: not a JSON object");
    return config;
}

/// The id of bos_token or eos_token, which is a string or an object with its content.
TokenId named_token(const Fields& config, const std::string& name, const Tokenizer::Impl& impl) {
    const json& value = config.at(name);
    const std::string content =
        value.is_object() ? Fields(value, "tokenizer_config.json " + name).text("content") : config.text(name);
    const auto id = impl.find(content);
    require(id.has_value(), ErrorKind::CorruptFile, "tokenizer_config.json: {} '{}' is no token", name, content);
    return *id;
}

void apply_config(const json& object, Tokenizer::Impl& impl) {
    const Fields config(object, "tokenizer_config.json");
    if (!impl.frame.before.empty() || !impl.frame.after.empty()) return;
    if (config.flag("add_bos_token", false)) impl.frame.before.push_back(named_token(config, "bos_token", impl));
    if (config.flag("add_eos_token", false)) impl.frame.after.push_back(named_token(config, "eos_token", impl));
}

json field_or_null(const Fields& fields, std::string_view key) {
    const json* value = fields.find(key);
    return value ? *value : json();
}

/// True if f holds for the construct or one inside it.
bool any_construct(const json& tree, bool (*f)(const json&)) {
    if (tree.is_object() && f(tree)) return true;
    for (const json& child : tree)
        if (child.is_structured() && any_construct(child, f)) return true;
    return false;
}

/// Metaspace that prepends to the first piece only looks at where a piece came from in the text as given. Positions are
/// not kept here, so what takes text away at the start cannot be followed.
void check_first_piece(const json& normalizer, const json& pre_tokenizer) {
    const bool asks =
        any_construct(pre_tokenizer, [](const json& c) { return c.value("prepend_scheme", json()) == "first"; });
    const bool drops = any_construct(normalizer, [](const json& c) {
        return c.value("type", json()) == "Strip" ||
               (c.value("type", json()) == "Replace" && c.value("content", json()) == "");
    });
    require(!asks || !drops, ErrorKind::Unsupported,
            "tokenizer.json: Metaspace with prepend_scheme 'first' after a normalizer that takes text away is not "
            "supported");
}

/// Only a vocabulary in which tokens come twice has such ids.
void find_special_twins(Tokenizer::Impl& impl) {
    const Vocab& vocab = impl.model->vocab();
    for (TokenId id = 0; id < vocab.id_end(); ++id) {
        if (!vocab.has(id) || vocab.find(vocab.token(id)) == id || impl.added.by_id(id)) continue;
        const auto other = impl.added.by_content(vocab.token(id));
        if (other && impl.added.by_id(*other)->special) impl.special_twins.push_back(id);
    }
}

void check_frame(const Tokenizer::Impl& impl) {
    for (const auto* side : {&impl.frame.before, &impl.frame.after})
        for (const TokenId id : *side)
            require(impl.has(id), ErrorKind::CorruptFile,
                    "tokenizer.json: post_processor adds id {}, which has no token", id);
}

}  // namespace

Tokenizer Tokenizer::from_json(std::string_view tokenizer_json, std::string_view tokenizer_config_json) {
    TokenizerFile file = TokenizerFile::parse(tokenizer_json);
    const Fields fields(file.tree, "the file");
    // truncation and padding are settings of training runs; a runtime neither cuts nor pads.
    fields.only({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor",
                 "decoder", "model"});
    auto impl = std::make_shared<Impl>();
    impl->model = parse_model(file);
    impl->normalizer = parse_normalizer(field_or_null(fields, "normalizer"));
    impl->pre_tokenizer = parse_pre_tokenizer(field_or_null(fields, "pre_tokenizer"));
    check_first_piece(field_or_null(fields, "normalizer"), field_or_null(fields, "pre_tokenizer"));
    impl->frame = parse_post_processor(field_or_null(fields, "post_processor"));
    impl->decoder = parse_decoder(field_or_null(fields, "decoder"));
    if (const json* added = fields.find("added_tokens"))
        impl->added = AddedTokens(*added, impl->model->vocab(), impl->normalizer);
    if (!tokenizer_config_json.empty()) apply_config(parse_config(tokenizer_config_json), *impl);
    find_special_twins(*impl);
    check_frame(*impl);
    return Tokenizer(std::move(impl));
}

}  // namespace llm
