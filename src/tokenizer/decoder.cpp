#include "src/tokenizer/decoder.h"

#include <optional>
#include <utility>

#include "ggmlx/core/error.h"
#include "src/tokenizer/byte_level.h"
#include "src/tokenizer/fields.h"
#include "src/tokenizer/metaspace.h"
#include "src/tokenizer/pattern.h"
#include "src/tokenizer/utf8.h"

namespace llm {
namespace {

using ggmlx::ErrorKind;
using ggmlx::require;
using nlohmann::json;

/// Gives Step its clone().
template <class Step, class Base>
class Cloned : public Base {
  public:
    using Base::Base;
    std::unique_ptr<DecodeStep> clone() const override {
        return std::make_unique<Step>(static_cast<const Step&>(*this));
    }
};

/// A step that needs tokens whole: waits for the end of one that comes in parts.
class WholeTokens : public DecodeStep {
  public:
    void push(const TokenPart& part) final {
        if (part.begins && part.ends) return token(part.text);
        held_ += part.text;
        if (part.ends) token(std::exchange(held_, {}));
    }

  private:
    virtual void token(std::string_view text) = 0;
    std::string held_;
};

/// All tokens become one.
class Fuse : public Cloned<Fuse, DecodeStep> {
  public:
    void push(const TokenPart& part) override { next_->push({part.text, std::exchange(first_, false), false}); }
    void finish() override {
        next_->push({{}, first_, true});
        next_->finish();
    }

  private:
    bool first_ = true;
};

/// Tokens with a space between them: what there is without a decoder.
class Spaced : public Cloned<Spaced, WholeTokens> {
    void token(std::string_view text) override {
        if (!std::exchange(first_, false)) next_->push({" "});
        next_->push({text});
    }
    bool first_ = true;
};

/// Bytes spelled as characters; the whole text becomes one token.
class ByteLevel : public Cloned<ByteLevel, WholeTokens> {
  public:
    void finish() override {
        next_->push({bytes_.finish(), first_, true});
        next_->finish();
    }

  private:
    void token(std::string_view text) override {
        const auto bytes = from_byte_level(text);
        const std::string certain = bytes_.push(bytes ? *bytes : text);
        if (!certain.empty()) next_->push({certain, std::exchange(first_, false), false});
    }
    Utf8Assembler bytes_;
    bool first_ = true;
};

/// "<0xE4>" is a byte; a run of such tokens becomes one token.
class ByteFallback : public Cloned<ByteFallback, WholeTokens> {
  public:
    void finish() override {
        end_run();
        next_->finish();
    }

  private:
    static std::optional<char> byte_of(std::string_view token) {
        if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
        const std::string digits(token.substr(3, 2));
        if (digits.find_first_not_of("0123456789abcdefABCDEF") != digits.npos) return std::nullopt;
        return static_cast<char>(std::stoi(digits, nullptr, 16));
    }
    void token(std::string_view text) override {
        const auto byte = byte_of(text);
        if (!byte) {
            end_run();
            return next_->push({text});
        }
        const std::string certain = bytes_.push({&*byte, 1});
        next_->push({certain, !std::exchange(in_run_, true), false});
    }
    void end_run() {
        if (std::exchange(in_run_, false)) next_->push({bytes_.finish(), false, true});
    }
    Utf8Assembler bytes_;
    bool in_run_ = false;
};

class Replace : public Cloned<Replace, WholeTokens> {
  public:
    Replace(Pattern pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}

  private:
    void token(std::string_view text) override { next_->push({replace_all(text, pattern_, content_)}); }
    Pattern pattern_;
    std::string content_;
};

/// Marks become spaces; those of the first token, which stood before the text, go.
class MetaspaceStep : public Cloned<MetaspaceStep, WholeTokens> {
  public:
    explicit MetaspaceStep(const Metaspace& m)
        : mark_(Pattern::literal(m.replacement)), strip_first_(m.prepend != Metaspace::Prepend::Never) {}

  private:
    void token(std::string_view text) override {
        next_->push({replace_all(text, mark_, std::exchange(strip_first_, false) ? "" : " ")});
    }
    Pattern mark_;
    bool strip_first_;
};

/// Takes up to `start` times a character from a token's start and up to `stop` times from its end.
class Strip : public Cloned<Strip, DecodeStep> {
  public:
    Strip(std::string content, size_t start, size_t stop) : content_(std::move(content)), start_(start), stop_(stop) {}

    void push(const TokenPart& part) override {
        bool begins = part.begins;
        if (begins) to_strip_ = start_;
        std::string_view text = part.text;
        for (; to_strip_ > 0 && text.starts_with(content_); --to_strip_) text.remove_prefix(content_.size());
        if (!text.empty()) to_strip_ = 0;
        held_ += text;
        if (part.ends) to_strip_ = 0;
        const size_t sure = held_.size() - trailing_bytes();
        next_->push({std::string_view(held_).substr(0, sure), begins, part.ends});
        held_.erase(0, part.ends ? held_.size() : sure);
    }

  private:
    /// Bytes at the end of what is held that may be stripped.
    size_t trailing_bytes() const {
        std::string_view rest = held_;
        for (size_t n = 0; n < stop_ && rest.ends_with(content_); ++n) rest.remove_suffix(content_.size());
        return held_.size() - rest.size();
    }
    std::string content_;
    size_t start_, stop_;
    size_t to_strip_ = 0;
    std::string held_;
};

template <class Step, class... Args>
DecodeChain chain_of(Args&&... args) {
    DecodeChain chain;
    chain.push_back(std::make_unique<Step>(std::forward<Args>(args)...));
    return chain;
}

DecodeChain parse_decoder_sequence(const Fields& f) {
    f.only({"type", "decoders"});
    DecodeChain chain;
    for (const json& step : f.constructs("decoders"))
        for (auto& parsed : parse_decoder(step)) chain.push_back(std::move(parsed));
    return chain;
}

DecodeChain parse_strip(const Fields& f) {
    f.only({"type", "content", "start", "stop"});
    const std::string content = f.text("content");
    const int64_t start = f.integer("start"), stop = f.integer("stop");
    require(!content.empty() && code_point_at(content, 0).size == content.size() && start >= 0 && stop >= 0,
            ErrorKind::CorruptFile, "tokenizer.json: {} needs one character and counts from 0", f.where());
    return chain_of<Strip>(content, static_cast<size_t>(start), static_cast<size_t>(stop));
}

}  // namespace

DecodeChain parse_decoder(const json& object) {
    if (object.is_null()) return chain_of<Spaced>();
    const Construct c(object, "decoder");
    const Fields& f = c.fields;
    if (c.type == "Sequence") return parse_decoder_sequence(f);
    if (c.type == "Strip") return parse_strip(f);
    if (c.type == "Metaspace") return chain_of<MetaspaceStep>(parse_metaspace(f));
    if (c.type == "Replace") {
        f.only({"type", "pattern", "content"});
        return chain_of<Replace>(parse_pattern(f), f.text("content"));
    }
    if (c.type == "ByteLevel") {
        f.only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
        return chain_of<ByteLevel>();
    }
    if (c.type == "ByteFallback" || c.type == "Fuse") {
        f.only({"type"});
        return c.type == "Fuse" ? chain_of<Fuse>() : chain_of<ByteFallback>();
    }
    c.unknown();
}

/// The end of a chain: collects the text.
class Decoding::Sink : public DecodeStep {
  public:
    std::unique_ptr<DecodeStep> clone() const override { return std::make_unique<Sink>(*this); }
    void push(const TokenPart& part) override { text += part.text; }
    void finish() override {}
    std::string text;
};

Decoding::Decoding(const DecodeChain& chain) : sink_(std::make_unique<Sink>()) {
    for (const auto& step : chain) chain_.push_back(step->clone());
    DecodeStep* next = sink_.get();
    for (auto step = chain_.rbegin(); step != chain_.rend(); ++step) {
        (*step)->set_next(next);
        next = step->get();
    }
}

Decoding::~Decoding() = default;

void Decoding::push(std::string_view token) {
    DecodeStep& first = chain_.empty() ? *sink_ : *chain_.front();
    first.push({token});
}

void Decoding::finish() {
    DecodeStep& first = chain_.empty() ? *sink_ : *chain_.front();
    first.finish();
}

std::string Decoding::take() { return std::exchange(sink_->text, {}); }

}  // namespace llm
