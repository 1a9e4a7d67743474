#include "convert/tokenizer/ranked_tokens.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "convert/tokenizer/template_json.h"
#include "ggmlx/core/error.h"
#include "src/tokenizer/byte_level.h"

namespace convert {
namespace {

using ggmlx::ErrorKind;
using ggmlx::require;
using nlohmann::ordered_json;

constexpr size_t kMaxTokenBytes = 512;
using RankOf = std::unordered_map<std::string_view, size_t>;  // to the token's place among those sorted by rank

RankOf check_tokens(const std::vector<RankedTokens::Token>& tokens) {
    RankOf ranks;
    ranks.reserve(tokens.size());
    for (size_t i = 0; i < tokens.size(); ++i) {
        const auto& [bytes, rank] = tokens[i];
        require(!bytes.empty(), ErrorKind::CorruptFile, "tokenizer: the token of rank {} is empty", rank);
        require(bytes.size() <= kMaxTokenBytes, ErrorKind::Unsupported,
                "tokenizer: the token of rank {} has {} bytes; more than {} are not supported", rank, bytes.size(),
                kMaxTokenBytes);
        require(rank >= 0 && (i == 0 || rank > tokens[i - 1].rank), ErrorKind::CorruptFile,
                "tokenizer: rank {} is negative or comes twice", rank);
        require(ranks.emplace(bytes, i).second, ErrorKind::CorruptFile,
                "tokenizer: the token of rank {} has another rank, too", rank);
    }
    for (int byte = 0; byte < 256; ++byte) {
        const char c = static_cast<char>(byte);
        require(ranks.contains({&c, 1}), ErrorKind::CorruptFile, "tokenizer: byte {} has no token", byte);
    }
    return ranks;
}

/// Where a token's bytes come apart into the two parts that make it; nothing if more than two are left, so that no
/// merge can make it.
std::optional<size_t> last_joint(std::string_view token, size_t own, const RankOf& ranks) {
    const auto rank_of = [&](size_t begin, size_t end) {
        const auto found = ranks.find(token.substr(begin, end - begin));
        return found == ranks.end() ? own : std::min(own, found->second);
    };
    std::vector<size_t> starts;     // of the parts, and the end
    std::vector<size_t> with_next;  // rank of part i joined with the next one; own: not before this token itself
    for (size_t i = 0; i <= token.size(); ++i) starts.push_back(i);
    for (size_t i = 0; i + 2 < starts.size(); ++i) with_next.push_back(rank_of(i, i + 2));
    while (with_next.size() > 1) {
        const auto best = std::min_element(with_next.begin(), with_next.end());
        if (*best == own) return std::nullopt;
        const auto i = static_cast<size_t>(best - with_next.begin());
        starts.erase(starts.begin() + static_cast<ptrdiff_t>(i) + 1);
        with_next.erase(best);
        if (i < with_next.size()) with_next[i] = rank_of(starts[i], starts[i + 2]);
        if (i > 0) with_next[i - 1] = rank_of(starts[i - 1], starts[i + 1]);
    }
    return starts[1];
}

std::string json_spelling(std::string_view bytes) {
    std::string spelling;
    llm::append_byte_level(spelling, bytes);
    return ordered_json(spelling).dump();
}

/// Written directly: as a JSON tree vocabulary and merges would take many times their size.
std::string ranked_model_text(const RankedTokens& model, const RankOf& ranks) {
    std::string out =
        R"({"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,)"
        R"("fuse_unk":false,"byte_fallback":false,"ignore_merges":true,"vocab":{)";
    const char* comma = "";
    for (const auto& [bytes, rank] : model.tokens) {
        fmt::format_to(std::back_inserter(out), "{}{}:{}", comma, json_spelling(bytes), model.first_id + rank);
        comma = ",";
    }
    out += R"(},"merges":[)";
    comma = "";
    for (size_t i = 0; i < model.tokens.size(); ++i) {
        const std::string_view bytes = model.tokens[i].bytes;
        if (bytes.size() < 2) continue;
        const auto joint = last_joint(bytes, i, ranks);
        if (!joint) continue;
        fmt::format_to(std::back_inserter(out), "{}[{},{}]", comma, json_spelling(bytes.substr(0, *joint)),
                       json_spelling(bytes.substr(*joint)));
        comma = ",";
    }
    return out += "]}";
}

ordered_json bos_template(const RankedTokens& model) {
    if (model.bos.empty()) return nullptr;
    const auto bos = std::find_if(model.added.begin(), model.added.end(),
                                  [&](const AddedTokenSpec& t) { return t.content == model.bos; });
    require(bos != model.added.end(), ErrorKind::CorruptFile, "tokenizer: there is no token '{}'", model.bos);
    return template_json(FrameToken{bos->id, model.bos}, std::nullopt);
}

ordered_json byte_level_step(bool use_regex) {
    return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", use_regex}};
}

}  // namespace

std::string tokenizer_json(RankedTokens model) {
    std::sort(model.tokens.begin(), model.tokens.end(),
              [](const RankedTokens::Token& a, const RankedTokens::Token& b) { return a.rank < b.rank; });
    const RankOf ranks = check_tokens(model.tokens);
    const ordered_json split = {
        {"type", "Split"}, {"pattern", {{"Regex", model.pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
    const ordered_json cut = {{"type", "Sequence"},
                              {"pretokenizers", ordered_json::array({split, byte_level_step(false)})}};
    std::string out = R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":)";
    out += added_tokens_json(model.added).dump();
    out += R"(,"normalizer":null,"pre_tokenizer":)" + cut.dump();
    out += R"(,"post_processor":)" + bos_template(model).dump();
    out += R"(,"decoder":)" + byte_level_step(true).dump();
    out += R"(,"model":)" + ranked_model_text(model, ranks);
    return out += "}\n";
}

}  // namespace convert
