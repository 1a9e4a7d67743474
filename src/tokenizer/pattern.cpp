#define PCRE2_CODE_UNIT_WIDTH 8
#include "src/tokenizer/pattern.h"

#include <pcre2.h>

#include <algorithm>
#include <new>

#include "ggmlx/core/error.h"
#include "src/tokenizer/fields.h"
#include "src/tokenizer/oniguruma.h"
#include "src/tokenizer/utf8.h"

namespace llm {
namespace {

using ggmlx::ErrorKind;
using ggmlx::fail;
using ggmlx::require;

template <auto Free>
struct Freed {
    template <class T>
    void operator()(T* p) const {
        Free(p);
    }
};
using Code = std::unique_ptr<pcre2_code, Freed<pcre2_code_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context, Freed<pcre2_compile_context_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Freed<pcre2_match_context_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Freed<pcre2_match_data_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Freed<pcre2_jit_stack_free>>;

// A greedy run that gives back its characters one by one counts a step for each, so the limit grows with the text.
constexpr uint64_t kStepsPerByte = 64, kMinSteps = 200'000;
constexpr size_t kMaxExpressionBytes = size_t{64} << 10;
constexpr size_t kJitStackBytes = size_t{64} << 20;
constexpr uint32_t kHeapKiB = 1u << 20;

std::string error_text(int code) {
    unsigned char text[256] = {};
    pcre2_get_error_message(code, text, sizeof text);
    return reinterpret_cast<const char*>(text);
}

Code compile(const std::string& pattern, std::string_view original) {
    const CompileContext context(pcre2_compile_context_create(nullptr));
    if (!context) throw std::bad_alloc();
    pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
    pcre2_set_max_pattern_length(context.get(), kMaxExpressionBytes);
    int error = 0;
    PCRE2_SIZE offset = 0;
    Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                            PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &error, &offset, context.get()));
    require(code != nullptr, ErrorKind::CorruptFile, "tokenizer.json: cannot compile the regular expression '{}': {}",
            original, error_text(error));
    pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);  // where there is no JIT, the interpreter does the same
    return code;
}

}  // namespace

struct Pattern::Impl {
    std::string source;  // the literal, or the expression as written
    Code code;           // null: a literal
};

Pattern Pattern::literal(std::string text) {
    Pattern p;
    p.impl_ = std::make_shared<Impl>(Impl{std::move(text), nullptr});
    return p;
}

Pattern Pattern::oniguruma(std::string_view regex) {
    Pattern p;
    p.impl_ = std::make_shared<Impl>(Impl{std::string(regex), compile(oniguruma_to_pcre2(regex), regex)});
    return p;
}

struct Pattern::Finder::State {
    std::shared_ptr<const Impl> pattern;
    MatchContext context;
    MatchData data;
    JitStack jit_stack;  // made when the machine's own 32 KiB do not suffice

    void find_literal(std::string_view text, std::vector<Range>& out) const;
    void find_regex(std::string_view text, std::vector<Range>& out);
    bool next(std::string_view text, size_t from, Range& found);
    int match(std::string_view text, size_t from, uint32_t options) {
        return pcre2_match(pattern->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                           PCRE2_NO_UTF_CHECK | options, data.get(), context.get());
    }
};

Pattern::Finder::Finder(const Pattern& pattern) : state_(std::make_unique<State>()) {
    state_->pattern = pattern.impl_;
    if (!pattern.impl_->code) return;
    state_->context.reset(pcre2_match_context_create(nullptr));
    state_->data.reset(pcre2_match_data_create(1, nullptr));
    if (!state_->context || !state_->data) throw std::bad_alloc();
    pcre2_set_heap_limit(state_->context.get(), kHeapKiB);
}

Pattern::Finder::~Finder() = default;
Pattern::Finder::Finder(Finder&&) noexcept = default;

void Pattern::Finder::find_all(std::string_view text, std::vector<Range>& out) {
    require(text.size() < kMaxTextBytes, ErrorKind::InvalidArgument,
            "a text of {} bytes is too long to tokenize (2 GiB)", text.size());
    if (state_->pattern->code)
        state_->find_regex(text, out);
    else
        state_->find_literal(text, out);
}

void Pattern::Finder::State::find_literal(std::string_view text, std::vector<Range>& out) const {
    const std::string& wanted = pattern->source;
    if (wanted.empty()) return;
    for (size_t at = text.find(wanted); at != text.npos; at = text.find(wanted, at + wanted.size()))
        out.push_back({static_cast<uint32_t>(at), static_cast<uint32_t>(at + wanted.size())});
}

void Pattern::Finder::State::find_regex(std::string_view text, std::vector<Range>& out) {
    const uint64_t steps = kMinSteps + kStepsPerByte * text.size();
    pcre2_set_match_limit(context.get(), static_cast<uint32_t>(std::min<uint64_t>(steps, UINT32_MAX)));
    Range found;
    bool any = false;
    uint32_t last_end = 0;
    for (size_t from = 0; from <= text.size() && next(text, from, found);) {
        if (found.size() == 0 && any && found.end == last_end) {
            from = found.end < text.size() ? found.end + code_point_at(text, found.end).size : text.size() + 1;
            continue;
        }
        out.push_back(found);
        any = true;
        from = last_end = found.end;
    }
}

bool Pattern::Finder::State::next(std::string_view text, size_t from, Range& found) {
    int rc = match(text, from, 0);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT && !jit_stack) {
        jit_stack.reset(pcre2_jit_stack_create(size_t{32} << 10, kJitStackBytes, nullptr));
        pcre2_jit_stack_assign(context.get(), nullptr, jit_stack.get());
        rc = match(text, from, 0);
    }
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) rc = match(text, from, PCRE2_NO_JIT);
    if (rc == PCRE2_ERROR_NOMATCH) return false;
    require(rc >= 0, ErrorKind::Unsupported, "the tokenizer's regular expression '{}' cannot handle this text: {}",
            pattern->source, error_text(rc));
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data.get());
    found = {static_cast<uint32_t>(ends[0]), static_cast<uint32_t>(ends[1])};
    return true;
}

std::string replace_all(std::string_view text, const Pattern& pattern, std::string_view content) {
    std::vector<Range> matches;
    return replace_all(text, pattern, content, matches);
}

std::string replace_all(std::string_view text, const Pattern& pattern, std::string_view content,
                        std::vector<Range>& matches) {
    matches.clear();
    Pattern::Finder(pattern).find_all(text, matches);
    require(text.size() + matches.size() * content.size() < kMaxTextBytes, ErrorKind::InvalidArgument,
            "a text is too long to tokenize (2 GiB)");
    std::string out;
    out.reserve(text.size() + matches.size() * content.size());
    size_t done = 0;
    for (const Range& m : matches) {
        out.append(text, done, m.begin - done);
        out += content;
        done = m.end;
    }
    out.append(text, done);
    return out;
}

Pattern parse_pattern(const Fields& fields) {
    const Fields pattern(fields.at("pattern"), fields.where() + " pattern");
    pattern.only({"String", "Regex"});
    if (pattern.find("Regex")) return Pattern::oniguruma(pattern.text("Regex"));
    return Pattern::literal(pattern.text("String"));
}

}  // namespace llm
