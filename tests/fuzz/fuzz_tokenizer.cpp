// Any bytes are a tokenizer or an Error. Before the first zero byte: a tokenizer.json (if it begins with "{"), else a
// tokenizer.model, a tiktoken file or a tekken.json; behind it the text to encode. Every id that comes out has a token,
// streamed text is decoded text, and borders between segments leave no trace.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "convert/tokenizer/files.h"
#include "ggmlx/core/error.h"
#include "src/tokenizer/tokenizer.h"

namespace {

using llm::TokenId;
using llm::Tokenizer;

constexpr size_t kMaxText = 256;

void check_decoding(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
    for (const bool skip_special : {false, true}) {
        llm::TokenStream stream(tokenizer, skip_special);
        std::string streamed;
        for (const TokenId id : ids) streamed += stream.push(id);
        if (streamed + stream.finish() != tokenizer.decode(ids, skip_special)) std::abort();
    }
}

void check(const Tokenizer& tokenizer, std::string_view text) {
    const auto ids = tokenizer.encode(text);
    for (const TokenId id : ids)
        if (!tokenizer.has_token(id)) std::abort();
    check_decoding(tokenizer, ids);
    std::vector<TokenId> any;
    for (TokenId id = 0; id < std::min<int64_t>(tokenizer.n_vocab(), 400); ++id) any.push_back(id);
    check_decoding(tokenizer, any);
    // The text becomes UTF-8 first, segment by segment, so it must be cut between characters.
    size_t middle = text.size() / 2;
    while (middle < text.size() && (static_cast<unsigned char>(text[middle]) & 0xC0) == 0x80) ++middle;
    const Tokenizer::Segment halves[] = {{text.substr(0, middle), false}, {text.substr(middle), false}};
    if (tokenizer.encode_segments(halves) != tokenizer.encode(text, {.parse_special = false})) std::abort();
}

std::string document_of(std::string_view bytes) {
    if (bytes.starts_with("{\"config\"")) return convert::tokenizer_document("tekken.json", bytes, {});
    if (bytes.starts_with('{')) return std::string(bytes);
    const auto nothing = [](std::string_view) -> std::optional<std::string> { return std::nullopt; };
    return convert::tokenizer_document("o200k_base.tiktoken", bytes, nothing);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    // A protocol buffer has zero bytes of its own: the last one counts there.
    const size_t zero = input.starts_with('{') ? input.find('\0') : input.rfind('\0');
    const std::string_view text = zero == input.npos ? " a b" : input.substr(zero + 1);
    try {
        const Tokenizer tokenizer = Tokenizer::from_json(document_of(input.substr(0, zero)));
        check(tokenizer, text.substr(0, kMaxText));
    } catch (const ggmlx::Error&) {
    }
    return 0;
}
