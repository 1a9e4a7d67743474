// Streaming: pieces are whole characters, come as soon as they are certain, and are decode() put together.

#include <random>

#include "src/tokenizer/utf8.h"
#include "tests/src/tokenizer/fixtures.h"

namespace llm::test {
namespace {

TokenId byte_token(const Tokenizer& t, const char* token) { return t.token_to_id(token).value(); }

TEST(Stream, EmojiOfFourByteTokensIsOnePiece) {
    // F0 9F 98 80 in GPT-2's spelling.
    const Tokenizer t = Tokenizer::from_json(read_fixture("byte_level.json"));
    TokenStream stream(t);
    EXPECT_EQ(stream.push(byte_token(t, "\u00f0")), "");
    EXPECT_EQ(stream.push(byte_token(t, "\u0141")), "");
    EXPECT_EQ(stream.push(byte_token(t, "\u013a")), "");
    EXPECT_EQ(stream.push(byte_token(t, "\u0122")), "\U0001f600");
    EXPECT_EQ(stream.finish(), "");
}

TEST(Stream, EmojiOfByteFallbackTokensIsOnePiece) {
    const Tokenizer t = Tokenizer::from_json(read_fixture("stories260k.json"));
    TokenStream stream(t);
    EXPECT_EQ(stream.push(byte_token(t, "<0xF0>")), "");
    EXPECT_EQ(stream.push(byte_token(t, "<0x9F>")), "");
    EXPECT_EQ(stream.push(byte_token(t, "<0x98>")), "");
    EXPECT_EQ(stream.push(byte_token(t, "<0x80>")), "\U0001f600");
    EXPECT_EQ(stream.finish(), "");
}

TEST(Stream, EndInsideACharacterGivesOneReplacement) {
    const Tokenizer byte_level = Tokenizer::from_json(read_fixture("byte_level.json"));
    TokenStream a(byte_level);
    EXPECT_EQ(a.push(byte_token(byte_level, "\u00f0")), "");
    EXPECT_EQ(a.push(byte_token(byte_level, "\u0141")), "");
    EXPECT_EQ(a.push(byte_token(byte_level, "<|endoftext|>")), "");
    EXPECT_EQ(a.finish(), kReplacementChar);

    const Tokenizer fallback = Tokenizer::from_json(read_fixture("stories260k.json"));
    TokenStream b(fallback);
    EXPECT_EQ(b.push(byte_token(fallback, "<0xF0>")), "");
    EXPECT_EQ(b.push(byte_token(fallback, "<0x9F>")), "");
    EXPECT_EQ(b.push(byte_token(fallback, "</s>")), "");
    EXPECT_EQ(b.finish(), kReplacementChar);
}

TEST(Stream, StartsAnewAfterFinish) {
    const Tokenizer t = Tokenizer::from_json(read_fixture("stories260k.json"));
    const auto ids = t.encode("Once upon", {.add_special = false});
    TokenStream stream(t);
    for (int round = 0; round < 2; ++round) {
        std::string text;
        for (const TokenId id : ids) text += stream.push(id);
        EXPECT_EQ(text + stream.finish(), "Once upon");
    }
}

void expect_streams_random_ids(const Tokenizer& t) {
    std::mt19937 random(3);
    for (int round = 0; round < 2000; ++round) {
        std::vector<TokenId> ids(random() % 12);
        for (TokenId& id : ids) id = static_cast<TokenId>(random() % static_cast<uint32_t>(t.n_vocab() + 2));
        for (const bool skip_special : {false, true}) {
            TokenStream stream(t, skip_special);
            std::string text;
            for (const TokenId id : ids) {
                const std::string piece = stream.push(id);
                ASSERT_TRUE(is_valid_utf8(piece));
                text += piece;
            }
            text += stream.finish();
            ASSERT_EQ(text, t.decode(ids, skip_special));
            ASSERT_TRUE(is_valid_utf8(text));
        }
    }
}

TEST(Stream, OfAnyIdsIsTheDecodedText) {
    expect_streams_random_ids(Tokenizer::from_json(read_fixture("byte_level.json")));
    expect_streams_random_ids(Tokenizer::from_json(read_fixture("stories260k.json")));
}

TEST(Stream, LosesNoCharacterOfABrokenByteRun) {
    const Tokenizer t = Tokenizer::from_json(read_fixture("stories260k.json"));
    std::vector<TokenId> ids;
    for (const char* token : {"<0xE4>", "<0xBD>", "<0xA0>", "<0xFF>", "<0x41>", "<0xE4>", "<0xBD>"})
        ids.push_back(byte_token(t, token));
    EXPECT_EQ(t.decode(ids), "\u4f60\ufffdA\ufffd");
}

TEST(Utf8, IllFormedPartsBecomeOneReplacementEach) {
    EXPECT_EQ(replace_invalid_utf8("a\xC3"), "a\ufffd");
    EXPECT_EQ(replace_invalid_utf8("\xC3\x28"), "\ufffd(");
    EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), "\ufffd\ufffd\ufffd");  // a surrogate
    EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\x98x"), "\ufffdx");
    EXPECT_EQ(replace_invalid_utf8("\xC0\xAF\xFF"), "\ufffd\ufffd\ufffd");
    EXPECT_EQ(replace_invalid_utf8("\xF4\x90\x80\x80"), "\ufffd\ufffd\ufffd\ufffd");
    EXPECT_EQ(replace_invalid_utf8("é\U0010ffff"), "é\U0010ffff");
}

TEST(Utf8, EncodeReplacesWhatIsIllFormed) {
    const Tokenizer t = Tokenizer::from_json(read_fixture("byte_level.json"));
    EXPECT_EQ(t.encode("a\xFF\xE4\xBDz"), t.encode("a\ufffd\ufffdz"));
}

}  // namespace
}  // namespace llm::test
