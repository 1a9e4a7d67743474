#include "src/tokenizer/split.h"

#include "ggmlx/core/error.h"
#include "src/tokenizer/utf8.h"

namespace llm {
namespace {

/// A stretch of a piece: a match, or what lies between two.
struct Segment {
    Range range;
    bool is_match;
};

/// The segments that cover a piece. Empty matches are kept: they cut.
void cover(uint32_t size, const std::vector<Range>& matches, bool invert, std::vector<Segment>& out) {
    out.clear();
    uint32_t done = 0;
    for (const Range& m : matches) {
        if (m.begin > done) out.push_back({{done, m.begin}, invert});
        out.push_back({m, !invert});
        done = m.end;
    }
    if (size > done) out.push_back({{done, size}, invert});
}

/// True if b, right after a, belongs to the same piece.
bool joined(const Segment& a, const Segment& b, SplitBehavior behavior) {
    switch (behavior) {
        case SplitBehavior::MergedWithPrevious:
            return !a.is_match && b.is_match;
        case SplitBehavior::MergedWithNext:
            return a.is_match && !b.is_match;
        case SplitBehavior::Contiguous:
            return a.is_match == b.is_match;
        default:
            return false;
    }
}

}  // namespace

SplitBehavior parse_split_behavior(std::string_view name) {
    if (name == "Removed") return SplitBehavior::Removed;
    if (name == "Isolated") return SplitBehavior::Isolated;
    if (name == "MergedWithPrevious") return SplitBehavior::MergedWithPrevious;
    if (name == "MergedWithNext") return SplitBehavior::MergedWithNext;
    if (name == "Contiguous") return SplitBehavior::Contiguous;
    ggmlx::fail(ggmlx::ErrorKind::Unsupported, "tokenizer.json: split behavior '{}' is not supported", name);
}

FindMatches characters(bool (*property)(char32_t)) {
    return [property](std::string_view text, std::vector<Range>& out) {
        for (size_t at = 0; at < text.size();) {
            const CodePoint c = code_point_at(text, at);
            const size_t end = at + c.size;
            if (property(c.value)) out.push_back({static_cast<uint32_t>(at), static_cast<uint32_t>(end)});
            at = end;
        }
    };
}

void split(Pieces& pieces, const FindMatches& find, SplitBehavior behavior, bool invert) {
    std::vector<Range> result, matches;
    std::vector<Segment> segments;
    result.reserve(pieces.pieces.size());
    for (const Range& piece : pieces.pieces) {
        matches.clear();
        find(pieces.piece(piece), matches);
        cover(piece.size(), matches, invert, segments);
        for (size_t i = 0; i < segments.size();) {
            const size_t first = i++;
            while (i < segments.size() && joined(segments[i - 1], segments[i], behavior)) ++i;
            const Range whole{piece.begin + segments[first].range.begin, piece.begin + segments[i - 1].range.end};
            const bool removed = behavior == SplitBehavior::Removed && segments[first].is_match;
            if (whole.size() > 0 && !removed) result.push_back(whole);
        }
    }
    const uint32_t start = pieces.pieces.empty() ? 0 : pieces.pieces.front().begin;
    pieces.at_start = pieces.at_start && !result.empty() && result.front().begin == start;
    pieces.pieces = std::move(result);
}

}  // namespace llm
