#include "src/tokenizer/tokenizer_file.h"

#include <charconv>
#include <cstdlib>

#include "ggmlx/core/error.h"

namespace llm {
namespace {

using ggmlx::ErrorKind;
using ggmlx::fail;
using ggmlx::require;
using nlohmann::json;

constexpr size_t kMaxDepth = 64;

/// A JSON number as Hugging Face's reader (serde_json) takes it: the digits as an integer, rounded to double, then
/// divided by a power of ten, which rounds again. One number in four becomes a neighbour of the nearest double; of two
/// ways with equal sums of scores that decides. nearest: the correctly rounded value, for exponents that no score has.
double rounded_twice(std::string_view text, double nearest) {
    uint64_t digits = 0;
    int64_t exponent = 0;
    bool in_fraction = false, full = false;
    size_t at = text.starts_with('-') ? 1 : 0;
    for (; at < text.size() && text[at] != 'e' && text[at] != 'E'; ++at) {
        if (text[at] == '.') {
            in_fraction = true;
            full = false;
            continue;
        }
        const auto digit = static_cast<uint64_t>(text[at] - '0');
        full = full || digits > (UINT64_MAX - digit) / 10;
        if (!full) digits = digits * 10 + digit;
        exponent += in_fraction ? (full ? 0 : -1) : (full ? 1 : 0);
    }
    int written = 0;
    const size_t sign = at + 1 < text.size() && text[at + 1] == '+' ? 2 : 1;
    if (at < text.size()) std::from_chars(text.data() + at + sign, text.data() + text.size(), written);
    exponent += written;
    constexpr int64_t kMaxExponent = 300;
    if (std::abs(exponent) > kMaxExponent || std::abs(int64_t{written}) > kMaxExponent) return nearest;
    const std::string power_text = "1e" + std::to_string(std::abs(exponent));
    double power = 1;
    std::from_chars(power_text.data(), power_text.data() + power_text.size(), power);
    const auto whole = static_cast<double>(digits);
    const double value = exponent < 0 ? whole / power : whole * power;
    return text.starts_with('-') ? -value : value;
}

/// Builds a tree from parser events.
class TreeBuilder {
  public:
    explicit TreeBuilder(json& root) : root_(&root) {}

    void key(const std::string& key) { key_ = key; }
    json* value(json v) {
        if (open_.empty()) return &(*root_ = std::move(v));
        json& parent = *open_.back();
        if (parent.is_object()) return &(parent[key_] = std::move(v));
        parent.push_back(std::move(v));
        return &parent.back();
    }
    void open(json v) { open_.push_back(value(std::move(v))); }
    void close() { open_.pop_back(); }

  private:
    json* root_;
    std::vector<json*> open_;  // a parent does not grow while a child is open, so the pointers hold
    std::string key_;
};

/// Receives the events of nlohmann's parser. The path is tracked only as far as it tells vocabulary and merges apart.
class Handler : public json::json_sax_t {
  public:
    explicit Handler(TokenizerFile& file) : file_(file), tree_(file.tree) {}

    bool null() override { return plain(nullptr); }
    bool boolean(bool v) override { return plain(v); }
    bool number_integer(int64_t v) override {
        if (state_ == State::ScorePair) return score(static_cast<double>(v));
        return state_ == State::Vocab ? token_id(v) : plain(v);
    }
    bool number_unsigned(uint64_t v) override {
        if (state_ == State::ScorePair) return score(static_cast<double>(v));
        if (state_ == State::Vocab) return token_id(v > INT64_MAX ? INT64_MAX : static_cast<int64_t>(v));
        return plain(v);
    }
    bool number_float(double v, const std::string& text) override {
        return state_ == State::ScorePair ? score(rounded_twice(text, v)) : plain(v);
    }
    bool binary(binary_t&) override { return plain(nullptr); }
    bool string(std::string& v) override {
        if (state_ == State::Merges) return merge_text(v);
        if (state_ == State::MergePair) return merge_side(v);
        if (state_ == State::ScorePair) return scored_text(v);
        return plain(v);
    }

    bool start_object(size_t) override {
        enter();
        if (depth_ == 3 && in_model_ && key_ == "vocab") {
            state_ = State::Vocab;
        } else {
            require_tree("an object");
            if (state_ == State::Tree) tree_.open(json::object());
        }
        return true;
    }
    bool end_object() override {
        if (state_ == State::Vocab)
            state_ = State::Tree;
        else if (state_ == State::Tree)
            tree_.close();
        leave();
        return true;
    }
    bool start_array(size_t) override {
        enter();
        if (depth_ == 3 && in_model_ && key_ == "merges") {
            state_ = State::Merges;
        } else if (depth_ == 3 && in_model_ && key_ == "vocab") {
            state_ = State::Scores;
            file_.has_scores = true;
        } else if (state_ == State::Merges) {
            state_ = State::MergePair;
            sides_.clear();
        } else if (state_ == State::Scores) {
            state_ = State::ScorePair;
            pair_ = {};
        } else {
            require_tree("a list");
            if (state_ == State::Tree) tree_.open(json::array());
        }
        return true;
    }
    bool end_array() override {
        if (state_ == State::MergePair)
            end_pair();
        else if (state_ == State::ScorePair)
            end_scored();
        else if (depth_ == 3 && state_ != State::Tree)
            state_ = State::Tree;
        else if (state_ == State::Tree)
            tree_.close();
        leave();
        return true;
    }
    bool key(std::string& k) override {
        if (state_ == State::Vocab) {
            token_offset_ = file_.vocab_arena.size();
            file_.vocab_arena += k;
            return true;
        }
        if (depth_ == 1) in_model_ = k == "model";
        if (depth_ == 2) key_ = k;
        if (state_ == State::Tree) tree_.key(k);
        return true;
    }
    bool parse_error(size_t position, const std::string&, const json::exception& e) override {
        fail(ErrorKind::CorruptFile, "tokenizer.json: not valid JSON at byte {}: {}", position, e.what());
    }

  private:
    enum class State { Tree, Vocab, Scores, ScorePair, Merges, MergePair };

    void enter() { require(++depth_ <= kMaxDepth, ErrorKind::CorruptFile, "tokenizer.json: nested too deeply"); }
    void leave() { --depth_; }

    void require_tree(std::string_view what) const {
        const bool in_merges = state_ == State::Merges || state_ == State::MergePair;
        require(state_ == State::Tree, ErrorKind::CorruptFile, "tokenizer.json: {} inside model.{}", what,
                in_merges ? "merges" : "vocab");
    }
    template <class T>
    bool plain(T&& v) {
        require_tree("an unexpected value");
        tree_.value(json(std::forward<T>(v)));
        return true;
    }
    TokenizerFile::Span keep(std::string_view s) {
        file_.merge_arena += s;
        return {file_.merge_arena.size() - s.size(), s.size()};
    }
    bool token_id(int64_t id) {
        file_.vocab.push_back({token_offset_, file_.vocab_arena.size() - token_offset_, id});
        return true;
    }
    bool merge_text(std::string_view s) {
        if (s.starts_with("#version")) return true;
        const size_t space = s.find(' ');
        require(space != s.npos && s.find(' ', space + 1) == s.npos, ErrorKind::CorruptFile,
                "tokenizer.json: merge '{}' is not two tokens with a space between", s);
        const auto left = keep(s.substr(0, space)), right = keep(s.substr(space + 1));
        file_.merges.push_back({left, right});
        return true;
    }
    bool merge_side(std::string_view s) {
        sides_.push_back(keep(s));
        return true;
    }
    void end_pair() {
        require(sides_.size() == 2, ErrorKind::CorruptFile, "tokenizer.json: merge {} has {} tokens, not 2",
                file_.merges.size(), sides_.size());
        file_.merges.push_back({sides_[0], sides_[1]});
        state_ = State::Merges;
    }

    bool scored_text(std::string_view s) {
        require(pair_.n_values++ == 0, ErrorKind::CorruptFile, "tokenizer.json: the score of token {} is a string",
                file_.scored.size());
        pair_.token.text = {file_.vocab_arena.size(), s.size()};
        file_.vocab_arena += s;
        return true;
    }
    bool score(double v) {
        require(pair_.n_values++ == 1, ErrorKind::CorruptFile, "tokenizer.json: token {} is a number",
                file_.scored.size());
        pair_.token.score = v;
        return true;
    }
    void end_scored() {
        require(pair_.n_values == 2, ErrorKind::CorruptFile, "tokenizer.json: token {} is not [token, score]",
                file_.scored.size());
        file_.scored.push_back(pair_.token);
        state_ = State::Scores;
    }

    TokenizerFile& file_;
    TreeBuilder tree_;
    State state_ = State::Tree;
    size_t depth_ = 0;         // open objects and arrays; 3 within model.vocab
    bool in_model_ = false;    // below the key "model" of the outermost object
    std::string key_;          // the last key at depth 2
    size_t token_offset_ = 0;  // of the vocabulary's last key
    std::vector<TokenizerFile::Span> sides_;
    /// A [token, score] of which so many values have come.
    struct {
        TokenizerFile::Scored token;
        int n_values = 0;
    } pair_;
};

}  // namespace

TokenizerFile TokenizerFile::parse(std::string_view text) {
    TokenizerFile file;
    Handler handler(file);
    json::sax_parse(text.begin(), text.end(), &handler);
    require(file.tree.is_object(), ErrorKind::CorruptFile, "tokenizer.json: is {}, not an object",
            file.tree.type_name());
    return file;
}

}  // namespace llm
