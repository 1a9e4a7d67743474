// Long texts of one kind of character, in a thread with little stack: no recursion, no quadratic time (such a text
// would then run into the test's time limit), and the right tokens.

#include <pthread.h>

#include <functional>

#include "src/tokenizer/utf8.h"
#include "tests/src/tokenizer/fixtures.h"

namespace llm::test {
namespace {

void run_with_small_stack(const std::function<void()>& body) {
    pthread_attr_t attributes;
    ASSERT_EQ(pthread_attr_init(&attributes), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 << 10), 0);
    pthread_t thread;
    const auto call = [](void* f) -> void* {
        (*static_cast<const std::function<void()>*>(f))();
        return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, &attributes, call, const_cast<std::function<void()>*>(&body)), 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
}

std::string repeat(std::string_view text, size_t n) {
    std::string out;
    for (size_t i = 0; i < n; ++i) out += text;
    return out;
}

const std::vector<std::string>& long_texts() {
    static const std::vector<std::string> texts = {
        repeat("Z", 131072),     repeat(" ", 1000000),     repeat("\n", 1000000),        repeat(".", 1000000),
        repeat("中", 100000),    repeat("\u0301", 100000), repeat(" ", 1000000) + "x",   repeat("ab", 500000),
        repeat("7", 1000000),    repeat("\r\n", 300000),   repeat("\U0001f600", 100000), repeat("'s", 300000),
        repeat("\x01", 1000000), repeat("<", 1000000)};
    return texts;
}

void expect_round_trip(const Tokenizer& tokenizer, const std::string& text) {
    const auto ids = tokenizer.encode(text);
    EXPECT_EQ(tokenizer.decode(ids), text);
    EXPECT_EQ(streamed(tokenizer, ids, true), text);
}

TEST(LongText, ByteLevel) {
    const Tokenizer tokenizer = Tokenizer::from_json(read_fixture("byte_level.json"));
    run_with_small_stack([&] {
        for (const std::string& text : long_texts()) expect_round_trip(tokenizer, text);
    });
}

TEST(LongText, SentencePieceStyleTakesTheWholeTextAsOneWord) {
    const Tokenizer tokenizer = Tokenizer::from_json(read_fixture("stories260k.json"));
    run_with_small_stack([&] {
        for (const std::string& text : long_texts()) expect_round_trip(tokenizer, text);
    });
}

TEST(LongText, Unigram) {
    // With and without word boundaries: the whole text is one piece for the second one.
    nlohmann::json tree = fixture("unigram.json");
    tree["normalizer"] = nullptr;
    tree["model"]["byte_fallback"] = true;
    for (const bool whole : {false, true}) {
        if (whole) tree["pre_tokenizer"] = nullptr;
        const Tokenizer tokenizer = Tokenizer::from_json(tree.dump());
        run_with_small_stack([&] {
            for (const std::string& text : long_texts()) {
                const auto ids = tokenizer.encode(text);
                EXPECT_EQ(streamed(tokenizer, ids, true), tokenizer.decode(ids));
            }
        });
    }
}

TEST(LongText, AddedTokensThatTakeWhiteSpaceLookAtItOnce) {
    // Every token may take the run of white space around it; looking at the run again for each would be quadratic.
    nlohmann::json tree = fixture("byte_level.json");
    tree["added_tokens"] = nlohmann::json::array();
    int id = 2000;
    for (const char* content : {"  ", "\t", "\n\n"})
        tree["added_tokens"].push_back({{"id", id++},
                                        {"content", content},
                                        {"lstrip", true},
                                        {"rstrip", true},
                                        {"special", false},
                                        {"normalized", false}});
    for (const char* content : {" \t ", "\n"})
        tree["added_tokens"].push_back({{"id", id++},
                                        {"content", content},
                                        {"lstrip", false},
                                        {"rstrip", true},
                                        {"special", false},
                                        {"normalized", false}});
    const Tokenizer tokenizer = Tokenizer::from_json(tree.dump());
    run_with_small_stack([&] {
        for (const char* unit : {" ", "  ", " \t", "\n ", " \t \n"})
            EXPECT_FALSE(tokenizer.encode(repeat(unit, 500000)).empty());
    });
}

TEST(LongText, IsCutWithoutChangingAToken) {
    // A long piece is cut where no merge crosses. No token of this vocabulary joins a full stop to "▁", so the whole is
    // what its sentences are.
    const Tokenizer tokenizer = Tokenizer::from_json(read_fixture("stories260k.json"));
    const std::string sentence = "Once upon a time, there was a little girl named Lily.";
    const auto one = tokenizer.encode(sentence, {.add_special = false});
    std::string text = sentence;
    std::vector<TokenId> expected = one;
    for (int i = 1; i < 1000; ++i) {
        text += " " + sentence;
        expected.insert(expected.end(), one.begin(), one.end());
    }
    EXPECT_EQ(tokenizer.encode(text, {.add_special = false}), expected);
}

}  // namespace
}  // namespace llm::test
