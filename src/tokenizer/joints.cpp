#include "src/tokenizer/joints.h"

#include <bit>
#include <unordered_set>

#include "src/tokenizer/utf8.h"

namespace llm {
namespace {

constexpr TokenId kNone = -1;  // the token has no second symbol

/// Symbols at one end of a token: the outermost one and its neighbour.
struct End {
    TokenId outer = kNone, inner = kNone;
};

constexpr size_t kBitsPerMerge = 16;

uint64_t mixed(uint64_t x) {
    x *= 0x9E3779B97F4A7C15u;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    return x ^ (x >> 32);
}

uint64_t hash_end(End e) {
    return mixed((uint64_t{static_cast<uint32_t>(e.inner)} << 32) | static_cast<uint32_t>(e.outer));
}

/// A place among n_words words of bits; n_words is a power of two.
struct Bit {
    size_t word;
    uint64_t mask;
};
Bit bit_of(uint64_t left, uint64_t right, size_t n_words) {
    const uint64_t hash = (left + std::rotl(right, 32)) * 0x9E3779B97F4A7C15u;
    return {(hash >> 32) & (n_words - 1), uint64_t{1} << (hash >> 26 & 63)};
}

class Ends {
  public:
    Ends(const Vocab& vocab, const std::function<TokenId(char32_t)>& character_id) : character_id_(character_id) {
        const auto n = static_cast<size_t>(vocab.id_end());
        first_.resize(n);
        last_.resize(n);
        for (TokenId id = 0; id < vocab.id_end(); ++id) add(static_cast<size_t>(id), vocab.token(id));
    }
    End first(uint32_t id) const { return first_[id]; }
    End last(uint32_t id) const { return last_[id]; }

  private:
    void add(size_t id, std::string_view token) {
        if (token.empty()) return;
        const CodePoint a = code_point_at(token, 0), z = last_code_point(token);
        first_[id].outer = character_id_(a.value);
        last_[id].outer = character_id_(z.value);
        if (a.size == token.size()) return;
        first_[id].inner = character_id_(code_point_at(token, a.size).value);
        last_[id].inner = character_id_(last_code_point(token.substr(0, token.size() - z.size)).value);
    }

    const std::function<TokenId(char32_t)>& character_id_;
    std::vector<End> first_, last_;
};

}  // namespace

Joints::Joints(const Vocab& vocab, const MergeTable& merges, const std::function<TokenId(char32_t)>& character_id,
               std::span<const TokenId> opaque) {
    const Ends ends(vocab, character_id);
    bits_.resize(std::bit_ceil(merges.size() * kBitsPerMerge / 64 + 1));
    const std::unordered_set<TokenId> not_spelled(opaque.begin(), opaque.end());
    merges.for_each([&](uint64_t key, const Merge&) {
        const auto left = static_cast<uint32_t>(key >> 32), right = static_cast<uint32_t>(key);
        everywhere_ = everywhere_ || not_spelled.contains(static_cast<TokenId>(left)) ||
                      not_spelled.contains(static_cast<TokenId>(right));
        const Bit bit = bit_of(hash_end(ends.last(left)), hash_end(ends.first(right)), bits_.size());
        bits_[bit.word] |= bit.mask;
    });
}

bool Joints::may_cross(std::span<const TokenId> symbols, size_t i) const {
    if (everywhere_) return true;
    const TokenId before = i > 1 ? symbols[i - 2] : kNone, after = i + 1 < symbols.size() ? symbols[i + 1] : kNone;
    const uint64_t left = hash_end({symbols[i - 1], before}), left_alone = hash_end({symbols[i - 1], kNone});
    const uint64_t right = hash_end({symbols[i], after}), right_alone = hash_end({symbols[i], kNone});
    const auto seen = [this](uint64_t a, uint64_t b) {
        const Bit bit = bit_of(a, b, bits_.size());
        return (bits_[bit.word] & bit.mask) != 0;
    };
    return seen(left, right) || seen(left_alone, right) || seen(left, right_alone) || seen(left_alone, right_alone);
}

}  // namespace llm
