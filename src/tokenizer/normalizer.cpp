#include "src/tokenizer/normalizer.h"

#include <memory>
#include <utility>
#include <vector>

#include "ggmlx/core/base64.h"
#include "ggmlx/core/error.h"
#include "src/tokenizer/charsmap.h"
#include "src/tokenizer/fields.h"
#include "src/tokenizer/pattern.h"
#include "src/tokenizer/unicode.h"
#include "src/tokenizer/utf8.h"

namespace llm {
namespace {

using nlohmann::json;

/// What white space at the ends leaves of a text.
Stretch stripped(std::string_view text, bool left, bool right) {
    size_t begin = 0, end = text.size();
    while (left && begin < end) {
        const CodePoint c = code_point_at(text, begin);
        if (!is_white_space(c.value)) break;
        begin += c.size;
    }
    while (right && begin < end) {
        const CodePoint c = last_code_point(text.substr(0, end));
        if (!is_white_space(c.value)) break;
        end -= c.size;
    }
    return {begin, end};
}

Normalizer strip(const Fields& f) {
    f.only({"type", "strip_left", "strip_right"});
    return [left = f.flag("strip_left"), right = f.flag("strip_right")](NormalText& t) {
        const Stretch kept = stripped(t.text, left, right);
        t.trust = t.trust.part(kept.begin, kept.end);
        t.text = t.text.substr(kept.begin, kept.end - kept.begin);
    };
}

Normalizer prepend(const Fields& f) {
    f.only({"type", "prepend"});
    return [prefix = f.text("prepend")](NormalText& t) {
        if (t.text.empty()) return;
        t.trust = t.trust.after({{0, 0, prefix.size()}});
        t.text.insert(0, prefix);
    };
}

Normalizer replace(const Fields& f) {
    f.only({"type", "pattern", "content"});
    return [pattern = parse_pattern(f), content = f.text("content")](NormalText& t) {
        std::vector<Range> matches;
        std::string text = replace_all(t.text, pattern, content, matches);
        if (t.trust.is_mixed()) {
            std::vector<Edit> edits;
            for (const Range& m : matches) edits.push_back({m.begin, m.end, content.size()});
            t.trust = t.trust.after(edits);
        }
        t.text = std::move(text);
    };
}

using TextFunction = std::function<std::string(std::string_view text)>;

/// Applies f where parts of the text are trusted: part by part, as far as that gives the same text.
void apply_by_parts(const TextFunction& f, NormalText& t) {
    std::vector<size_t> cuts;
    for (const Stretch& s : t.trust.stretches()) cuts.insert(cuts.end(), {s.begin, s.end});
    cuts.push_back(t.text.size());
    const std::string_view text = t.text;
    std::string out;
    std::vector<Edit> edits;
    size_t begin = 0, end = 0;  // of the part that comes next
    std::string part;           // what it becomes
    for (const size_t cut : cuts) {
        if (cut == end) continue;
        std::string next = f(text.substr(end, cut - end));
        if (begin < end) {
            std::string both = f(text.substr(begin, cut - begin));
            if (both == part + next) {
                edits.push_back({begin, end, part.size()});
                out += part;
                begin = end;
            } else {
                next = std::move(both);  // something crosses the border: the two are one part
            }
        }
        part = std::move(next);
        end = cut;
    }
    edits.push_back({begin, end, part.size()});
    t.text = out + part;
    t.trust = t.trust.after(edits);
}

Normalizer by_function(TextFunction f) {
    return [f = std::move(f)](NormalText& t) {
        if (t.trust.is_mixed())
            apply_by_parts(f, t);
        else
            t.text = f(t.text);
    };
}

Normalizer unicode_form(const Fields& fields, NormalForm form) {
    fields.only({"type"});
    return by_function([form](std::string_view text) { return normalize(text, form); });
}

Normalizer precompiled(const Fields& f) {
    f.only({"type", "precompiled_charsmap"});
    const auto bytes = ggmlx::from_base64(f.text("precompiled_charsmap"));
    ggmlx::require(bytes.has_value(), ggmlx::ErrorKind::CorruptFile,
                   "tokenizer.json: precompiled_charsmap of {} is not base64", f.where());
    const auto map = std::make_shared<const Charsmap>(*bytes);
    return by_function([map](std::string_view text) { return map->apply(text); });
}

Normalizer sequence(const Fields& fields) {
    fields.only({"type", "normalizers"});
    std::vector<Normalizer> steps;
    for (const json& step : fields.constructs("normalizers")) steps.push_back(parse_normalizer(step));
    return [steps](NormalText& text) {
        for (const Normalizer& step : steps) step(text);
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
    if (c.type == "Strip") return strip(f);
    if (c.type == "Prepend") return prepend(f);
    if (c.type == "Replace") return replace(f);
    if (c.type == "Precompiled") return precompiled(f);
    if (c.type == "Lowercase") {
        f.only({"type"});
        return by_function(to_lower);
    }
    c.unknown();
}

}  // namespace llm
