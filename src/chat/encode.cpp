#include "src/chat/encode.h"

namespace llm {

std::vector<TokenId> encode(const Tokenizer& tokenizer, const Prompt& prompt, size_t from) {
    std::vector<Tokenizer::Segment> segments;
    size_t begin = from;
    for (const Run& run : prompt.runs) {
        if (run.end <= begin) continue;
        const auto text = std::string_view(prompt.text).substr(begin, run.end - begin);
        segments.push_back({text, run.origin != Origin::Input});
        begin = run.end;
    }
    return tokenizer.encode_segments(segments, false);
}

}  // namespace llm
