#include "src/tokenizer/pretokenizer.h"

#include <utility>

#include "ggmlx/core/error.h"
#include "src/tokenizer/byte_level.h"
#include "src/tokenizer/fields.h"
#include "src/tokenizer/metaspace.h"
#include "src/tokenizer/split.h"
#include "src/tokenizer/unicode.h"
#include "src/tokenizer/utf8.h"

namespace llm {
namespace {

using ggmlx::ErrorKind;
using ggmlx::require;
using nlohmann::json;

// GPT-2's expression, which ByteLevel uses unless "use_regex" is false.
// Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", and its published encoder.
constexpr std::string_view kGpt2Regex = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

void split_at(Pieces& p, const Pattern& pattern, SplitBehavior behavior, bool invert) {
    Pattern::Finder finder(pattern);
    split(
        p, [&](std::string_view text, std::vector<Range>& out) { finder.find_all(text, out); }, behavior, invert);
}

PreTokenizer sequence_step(const Fields& fields) {
    fields.only({"type", "pretokenizers"});
    std::vector<PreTokenizer> steps;
    for (const json& step : fields.constructs("pretokenizers")) steps.push_back(parse_pre_tokenizer(step));
    return [steps](Pieces& p) {
        for (const PreTokenizer& step : steps) step(p);
    };
}

PreTokenizer split_step(const Fields& fields) {
    fields.only({"type", "pattern", "behavior", "invert"});
    return [pattern = parse_pattern(fields), behavior = parse_split_behavior(fields.text("behavior")),
            invert = fields.flag("invert", false)](Pieces& p) { split_at(p, pattern, behavior, invert); };
}

PreTokenizer byte_level(const Fields& fields) {
    fields.only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    const bool prefix_space = fields.flag("add_prefix_space");
    const bool use_regex = fields.flag("use_regex", true);
    return [prefix_space, use_regex, pattern = Pattern::oniguruma(kGpt2Regex)](Pieces& p) {
        if (prefix_space)
            rewrite(p, [](std::string_view piece, bool, std::string& out) {
                if (!piece.starts_with(' ')) out += ' ';
                out += piece;
            });
        if (use_regex) split_at(p, pattern, SplitBehavior::Isolated, false);
        rewrite(p, [](std::string_view piece, bool, std::string& out) { append_byte_level(out, piece); });
    };
}

PreTokenizer metaspace(const Fields& fields) {
    const Metaspace m = parse_metaspace(fields);
    return [m](Pieces& p) {
        rewrite(p, [&](std::string_view piece, bool first, std::string& out) {
            const bool marked = piece.starts_with(' ') || piece.starts_with(m.replacement);
            if (!marked &&
                (m.prepend == Metaspace::Prepend::Always || (m.prepend == Metaspace::Prepend::First && first)))
                out += m.replacement;
            for (const char c : piece) {
                if (c == ' ')
                    out += m.replacement;
                else
                    out += c;
            }
        });
        if (m.split) split_at(p, Pattern::literal(m.replacement), SplitBehavior::MergedWithNext, false);
    };
}

PreTokenizer char_delimiter(const Fields& fields) {
    fields.only({"type", "delimiter"});
    return [pattern = Pattern::literal(fields.text("delimiter"))](Pieces& p) {
        split_at(p, pattern, SplitBehavior::Removed, false);
    };
}

PreTokenizer by_property(bool (*property)(char32_t), SplitBehavior behavior) {
    return [find = characters(property), behavior](Pieces& p) { split(p, find, behavior); };
}

bool is_symbol(char32_t c) { return !is_word(c) && !is_white_space(c); }

/// Words and runs of symbols; white space is dropped.
void words_and_symbols(Pieces& p) {
    split(p, characters(is_white_space), SplitBehavior::Removed);
    split(p, characters(is_symbol), SplitBehavior::Contiguous);
}

}  // namespace

void rewrite(Pieces& p, const std::function<void(std::string_view piece, bool first, std::string& out)>& append) {
    std::string text;
    text.reserve(p.text.size() + p.text.size() / 4);
    bool first = p.at_start;
    for (Range& r : p.pieces) {
        const size_t begin = text.size();
        append(p.piece(r), first, text);
        require(text.size() < kMaxTextBytes, ErrorKind::InvalidArgument, "a text is too long to tokenize (2 GiB)");
        r = {static_cast<uint32_t>(begin), static_cast<uint32_t>(text.size())};
        first = false;
    }
    p.text = std::move(text);
}

PreTokenizer parse_pre_tokenizer(const json& object) {
    if (object.is_null()) return {};
    const Construct c(object, "pre_tokenizer");
    const Fields& f = c.fields;
    if (c.type == "Sequence") return sequence_step(f);
    if (c.type == "Split") return split_step(f);
    if (c.type == "ByteLevel") return byte_level(f);
    if (c.type == "Metaspace") return metaspace(f);
    if (c.type == "CharDelimiterSplit") return char_delimiter(f);
    if (c.type == "Digits") {
        f.only({"type", "individual_digits"});
        return by_property(is_numeric,
                           f.flag("individual_digits") ? SplitBehavior::Isolated : SplitBehavior::Contiguous);
    }
    if (c.type == "Punctuation") {
        f.only({"type", "behavior"});
        return by_property(is_punctuation, parse_split_behavior(f.text("behavior", "Isolated")));
    }
    if (c.type == "WhitespaceSplit") {
        f.only({"type"});
        return by_property(is_white_space, SplitBehavior::Removed);
    }
    if (c.type == "Whitespace") {
        f.only({"type"});
        return words_and_symbols;
    }
    c.unknown();
}

}  // namespace llm
