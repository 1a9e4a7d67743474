#include "src/tokenizer/postprocessor.h"

#include "ggmlx/core/error.h"
#include "src/tokenizer/fields.h"
#include "src/tokenizer/vocab.h"

namespace llm {
namespace {

using ggmlx::ErrorKind;
using ggmlx::require;
using nlohmann::json;

std::vector<TokenId> ids_of(const Fields& special_tokens, const std::string& name) {
    const Fields token(special_tokens.at(name), "post_processor special token " + name);
    std::vector<TokenId> ids;
    for (const json& id : token.list("ids")) {
        require(id.is_number_integer() && id >= 0 && id <= kMaxTokenId, ErrorKind::CorruptFile,
                "tokenizer.json: {} has an impossible id", token.where());
        ids.push_back(id.get<TokenId>());
    }
    return ids;
}

/// "single": special tokens around the one sequence A.
SpecialFrame parse_template(const Fields& f) {
    f.only({"type", "single", "pair", "special_tokens"});
    SpecialFrame frame;
    bool seen = false;
    for (const json& item : f.list("single")) {
        const Fields piece(item, f.where() + " piece");
        piece.only({"SpecialToken", "Sequence"});
        if (piece.find("Sequence")) {
            const std::string id = Fields(piece.at("Sequence"), piece.where()).text("id");
            require(id == "A" && !seen, ErrorKind::Unsupported,
                    "tokenizer.json: {} with a sequence '{}', or with one that comes twice, is not supported",
                    f.where(), id);
            seen = true;
            continue;
        }
        const std::string name = Fields(piece.at("SpecialToken"), piece.where()).text("id");
        const auto ids = ids_of(Fields(f.at("special_tokens"), f.where() + " special_tokens"), name);
        auto& side = seen ? frame.after : frame.before;
        side.insert(side.end(), ids.begin(), ids.end());
    }
    require(seen, ErrorKind::CorruptFile, "tokenizer.json: {} has no place for the text", f.where());
    return frame;
}

SpecialFrame parse_processor_sequence(const Fields& f) {
    f.only({"type", "processors"});
    SpecialFrame frame;
    for (const json& step : f.constructs("processors")) {
        const SpecialFrame outer = parse_post_processor(step);
        frame.before.insert(frame.before.begin(), outer.before.begin(), outer.before.end());
        frame.after.insert(frame.after.end(), outer.after.begin(), outer.after.end());
    }
    return frame;
}

}  // namespace

SpecialFrame parse_post_processor(const json& object) {
    if (object.is_null()) return {};
    const Construct c(object, "post_processor");
    if (c.type == "Sequence") return parse_processor_sequence(c.fields);
    if (c.type == "TemplateProcessing") return parse_template(c.fields);
    if (c.type == "ByteLevel") {  // trims offsets, which are not kept here
        c.fields.only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
        return {};
    }
    c.unknown();
}

}  // namespace llm
