#include "src/tokenizer/normalizer.h"

#include <utility>
#include <vector>

#include "src/tokenizer/fields.h"
#include "src/tokenizer/pattern.h"
#include "src/tokenizer/unicode.h"
#include "src/tokenizer/utf8.h"

namespace llm {
namespace {

using nlohmann::json;

std::string strip(const std::string& text, bool left, bool right) {
    std::string_view rest = text;
    for (; left && !rest.empty();) {
        const CodePoint c = code_point_at(rest, 0);
        if (!is_white_space(c.value)) break;
        rest.remove_prefix(c.size);
    }
    for (; right && !rest.empty();) {
        const CodePoint c = last_code_point(rest);
        if (!is_white_space(c.value)) break;
        rest.remove_suffix(c.size);
    }
    return std::string(rest);
}

Normalizer unicode_form(const Fields& fields, NormalForm form) {
    fields.only({"type"});
    return [form](std::string text) { return normalize(text, form); };
}

Normalizer sequence(const Fields& fields) {
    fields.only({"type", "normalizers"});
    std::vector<Normalizer> steps;
    for (const json& step : fields.list("normalizers")) steps.push_back(parse_normalizer(step));
    return [steps](std::string text) {
        for (const Normalizer& step : steps) text = step(std::move(text));
        return text;
    };
}

}  // namespace

Normalizer parse_normalizer(const json& object) {
    if (object.is_null()) return {};
    const Construct c(object, "normalizer");
    const Fields& f = c.fields;
    if (c.type == "NFC") return unicode_form(f, NormalForm::Nfc);
    if (c.type == "NFD") return unicode_form(f, NormalForm::Nfd);
    if (c.type == "NFKC") return unicode_form(f, NormalForm::Nfkc);
    if (c.type == "NFKD") return unicode_form(f, NormalForm::Nfkd);
    if (c.type == "Sequence") return sequence(f);
    if (c.type == "Lowercase") {
        f.only({"type"});
        return [](std::string text) { return to_lower(text); };
    }
    if (c.type == "Prepend") {
        f.only({"type", "prepend"});
        return [prefix = f.text("prepend")](std::string text) { return text.empty() ? text : prefix + text; };
    }
    if (c.type == "Strip") {
        f.only({"type", "strip_left", "strip_right"});
        return [left = f.flag("strip_left"), right = f.flag("strip_right")](std::string text) {
            return strip(text, left, right);
        };
    }
    if (c.type == "Replace") {
        f.only({"type", "pattern", "content"});
        return [pattern = parse_pattern(f), content = f.text("content")](std::string text) {
            return replace_all(text, pattern, content);
        };
    }
    c.unknown();
}

}  // namespace llm
